//! Messages of the command line in the words of the page and of the API, which have fields in place of flags.

/// What a message says, and what it says here. Longer texts come first.
const WORDS: [(&str, &str); 23] = [
    ("give the number: --batch 32", "enter the number of samples of one step"),
    ("--batch overrides it", "another batch can be entered"),
    ("a larger `--budget`", "a larger `methods.simulate.budget`"),
    ("or say with --with what to put in place", "or enter the layers to put in place"),
    ("name the first layer to replace with --from", "name the first layer to replace"),
    (
        "`stepcast models show NAME --layers` lists those of the zoo",
        "leave it empty to see which layers matter",
    ),
    ("-o sweep.csv has them all", "a download has them all"),
    ("`stepcast predict` explains them", "the forecast explains them"),
    ("`--plan` lists them", "a download as JSON lists them"),
    ("`--json` has all values", "a download as JSON has all values"),
    ("or allow more with --max-memory", "or use `stepcast import --max-memory`"),
    ("or --price DEVICE=2.5", "or prices of devices"),
    ("add --vary KEY=VALUES, or --devices with prices", "add a key to vary, with two values or more"),
    (", or --how heuristic", ""),
    ("give it to `--calibrate`", "give it to `stepcast predict --calibrate`"),
    ("name `--batches`", "enter batches"),
    ("run `stepcast models` for the list", "the form lists all models"),
    ("run `stepcast devices` for the list", "the form lists all devices"),
    ("run `stepcast networks` for the list", "the form lists all networks"),
    ("`--method ", "`method "),
    ("use --method ", "use the method "),
    ("`--json` has them all", "a download as JSON has them all"),
    ("`method ", "the method `"),
];

/// The text without flags.
pub(crate) fn for_the_page(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (flag, words)| match text.contains(flag) {
        true => text.replace(flag, words),
        false => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_fields() {
        let said = "use `architecture = \"all-reduce\"`, or `--method simulate`";
        assert_eq!(for_the_page(said), "use `architecture = \"all-reduce\"`, or the method `simulate`");
        assert_eq!(
            for_the_page("use --method layerwise or zeng2023, or --how heuristic"),
            "use the method layerwise or zeng2023"
        );
        assert_eq!(for_the_page("nothing to change"), "nothing to change");
    }
}
