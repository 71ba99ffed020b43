//! Plots of fixed figures against golden files, and plots of arbitrary figures against the checks of `draw::check`.

mod any;
mod examples;

use crate::draw::check;

#[test]
fn plots_are_as_they_were() {
    check::golden("scaling_curve", &examples::scaling_curve().svg());
    check::golden("breakdown", &examples::breakdown().svg());
    check::golden("gantt", &examples::gantt().svg());
    check::golden("fusion", &examples::fusion().svg());
    check::golden("pareto", &examples::pareto().svg());
    check::golden("predicted_measured", &examples::predicted_measured().svg());
    check::golden("rank_grid", &examples::rank_grid().svg_of(460.0));
    check::golden("stage_memory", &examples::stage_memory().svg());
    check::golden("staleness", &examples::staleness().svg());
    check::golden("varied_numbers", &examples::varied_numbers().svg());
    check::golden("varied_names", &examples::varied_names().svg());
    check::golden("varied_pair", &examples::varied_pair().svg());
}

#[test]
fn a_plot_of_nothing_says_so() {
    use super::*;
    let drawn = [
        scaling_curve::ScalingCurve::default().svg(),
        breakdown::Breakdown::default().svg(),
        gantt::Gantt::default().svg(),
        fusion::FusionComparison::default().svg(),
        pareto::Pareto::default().svg(),
        rank_grid::RankGrid::default().svg(),
        stage_memory::StageMemory::default().svg(),
        staleness::Staleness::default().svg(),
    ];
    for drawn in drawn {
        check::sound(&drawn);
        assert!(drawn.contains(">There is nothing to show"), "{drawn}");
    }
}

#[test]
fn narrow_bars_are_merged() {
    use super::gantt::{Bar, Gantt, Lane};
    use stepcast_core::quantity::Seconds;
    let bar = |place: u32| Bar {
        name: format!("op {place}"),
        since: Seconds::new(f64::from(place) * 1e-6),
        until: Seconds::new(f64::from(place) * 1e-6 + 9e-7),
        ..Bar::default()
    };
    let lane = Lane { bars: (0..50_000).map(bar).collect(), ..Lane::default() };
    let drawn = Gantt { title: "many".to_owned(), lanes: vec![lane], ..Gantt::default() }.svg();
    assert!(drawn.len() < 20_000, "{}", drawn.len());
    assert!(drawn.contains("op 0 and 49999 more"));
}

/// Points of a front are joined by steps: a slope would suggest configurations that were not found.
#[test]
fn the_front_is_a_staircase() {
    let drawn = examples::pareto().svg();
    let path = drawn.lines().find(|line| line.starts_with("<path") && line.contains("s0 stroke")).unwrap();
    let d = path.split('"').nth(1).unwrap();
    let points: Vec<Vec<&str>> = d[1..].split('L').map(|point| point.split(' ').collect()).collect();
    assert!(points.len() > 2);
    assert!(points.windows(2).all(|pair| pair[0][0] == pair[1][0] || pair[0][1] == pair[1][1]), "{d}");
}
