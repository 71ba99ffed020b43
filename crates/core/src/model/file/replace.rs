//! Replaces the last layers of a model.

use super::{LayerFile, ModelFile};
use crate::fault::{Fault, KeyPath, Step};
use crate::model::Model;

impl ModelFile {
    /// This model with layer `first` and all later ones replaced by `layers`; the input is layer 0. The first of
    /// `layers` reads the inputs of layer `first` by default. Paths of errors refer to a table that contains only
    /// `layers`.
    pub fn replaced(&self, first: usize, layers: Vec<LayerFile>) -> Result<(Self, Model), Fault> {
        let wrong = |reason: String, remedy: &str| Err(Fault::in_key("layers", reason, remedy));
        let Some((kept, cut)) = first.checked_sub(1).and_then(|place| self.layers.split_at_checked(place))
        else {
            return wrong("the input cannot be replaced".to_owned(), "cut at a later layer");
        };
        let mut layers = layers;
        let Some(head) = layers.first_mut() else {
            let remedy = "list at least one layer, such as { op = \"global-average-pool\" }";
            return wrong("there is nothing to put in place".to_owned(), remedy);
        };
        if head.inputs.is_none() {
            head.inputs = cut.first().and_then(|layer| layer.inputs.clone());
        }
        let read: Vec<&String> = layers.iter().filter_map(|layer| layer.inputs.as_ref()).flatten().collect();
        if let Some(lost) = self.lost(kept, &read, head_reads_last(&layers)) {
            let reason =
                format!("nothing would read the layer \"{lost}\" any more: the cut goes through a branch");
            return wrong(reason, "cut where a single layer leads on");
        }
        let file = Self { layers: kept.iter().cloned().chain(layers).collect(), ..self.clone() };
        let model = file.build().map_err(|fault| without(kept.len(), fault))?;
        Ok((file, model))
    }

    /// A kept layer that only removed layers read, and that the replacement does not read.
    fn lost(&self, kept: &[LayerFile], read: &[&String], last_is_read: bool) -> Option<String> {
        let name = |index: usize| self.layer_name(index);
        let reads = |index: usize| -> Vec<String> {
            match (&self.layers[index].inputs, index) {
                (Some(names), _) => names.clone(),
                (None, _) if self.layers[index].op == "input" => Vec::new(),
                (None, 0) => vec!["input".to_owned()],
                (None, _) => vec![name(index - 1)],
            }
        };
        let before: Vec<String> = (0..kept.len()).flat_map(reads).collect();
        let after: Vec<String> = (kept.len()..self.layers.len()).flat_map(reads).collect();
        let last = kept.len().checked_sub(1).map(name);
        after.into_iter().find(|layer| {
            let kept_layer = (0..kept.len()).any(|index| name(index) == *layer);
            let still_read = before.contains(layer)
                || read.contains(&layer)
                || (last_is_read && last.as_ref() == Some(layer));
            kept_layer && !still_read
        })
    }
}

fn head_reads_last(layers: &[LayerFile]) -> bool {
    layers.first().is_some_and(|layer| layer.inputs.is_none() && layer.op != "input")
}

/// The same error with indices into `layers` reduced by `kept`.
fn without(kept: usize, fault: Fault) -> Fault {
    let step = |path: KeyPath, step: &Step| match step {
        Step::Key(key) => path.key(key),
        Step::Index(index) => path.index(index.saturating_sub(kept)),
    };
    Fault { key: fault.key.steps().iter().fold(KeyPath::root(), step), ..fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRANCH: &str = r#"
        input = [3, 8, 8]
        layers = [
            { name = "a", op = "conv2d", out = 4, kernel = 1 },
            { name = "b", op = "conv2d", out = 4, kernel = 1 },
            { name = "c", op = "conv2d", out = 4, kernel = 1, inputs = ["a"] },
            { name = "sum", op = "add", inputs = ["b", "c"] },
            { name = "end", op = "flatten" },
        ]"#;

    fn replaced(first: usize, layers: &str) -> Result<(ModelFile, Model), Fault> {
        #[derive(serde::Deserialize)]
        struct Layers {
            layers: Vec<LayerFile>,
        }
        let layers: Layers = toml::from_str(layers).unwrap();
        toml::from_str::<ModelFile>(BRANCH).unwrap().replaced(first, layers.layers)
    }

    #[test]
    fn the_replacement_reads_what_the_first_replaced_layer_read() {
        let (_, model) = replaced(5, r#"layers = [{ op = "relu" }]"#).unwrap();
        assert_eq!(model.layers()[5].inputs, [4]);
        let (_, model) = replaced(4, r#"layers = [{ op = "add" }, { op = "relu" }]"#).unwrap();
        assert_eq!(model.layers()[4].inputs, [2, 3]);
    }

    #[test]
    fn what_cannot_be_put_in_place_is_told_where_it_stands() {
        let wrong = |first, layers| {
            let error = replaced(first, layers).unwrap_err();
            (error.key.to_string(), error.reason)
        };
        let (path, reason) = wrong(3, r#"layers = [{ op = "relu" }]"#);
        assert_eq!((path.as_str(), reason.contains("the layer \"b\"")), ("layers", true), "{reason}");
        let (path, _) = wrong(5, r#"layers = [{ op = "relu" }, { op = "conv2d", out = 0, kernel = 1 }]"#);
        assert_eq!(path, "layers[1].out");
        let (path, _) = wrong(4, r#"layers = [{ op = "relu" }]"#);
        assert_eq!(path, "layers[0].inputs");
        assert_eq!(wrong(5, "layers = []").1, "there is nothing to put in place");
        assert_eq!(wrong(0, r#"layers = [{ op = "relu" }]"#).1, "the input cannot be replaced");
    }
}
