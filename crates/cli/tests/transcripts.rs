//! The program's output, word for word: `tests/transcripts/` and the manual itself.
//!
//! `TRYCMD=overwrite cargo test -p stepcast-cli --test transcripts` writes it anew.

#[test]
fn output_is_as_written() {
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    trycmd::TestCases::new()
        .case("crates/cli/tests/transcripts/*.trycmd")
        .case("docs/advise.md")
        .case("docs/check.md")
        .case("docs/cli.md")
        .case("docs/contract.md")
        .case("docs/plan.md");
}
