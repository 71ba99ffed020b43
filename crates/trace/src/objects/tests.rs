use super::*;

/// Hands out a text in pieces.
struct Pieces<'a> {
    text: &'a [u8],
    piece: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.piece.min(buffer.len());
        self.text.read(&mut buffer[..most])
    }
}

/// What the objects have under `n`.
fn cut(text: &[u8], piece: usize) -> (Vec<String>, Option<Course>) {
    let keys: &[&str] = if memmem::find(text, b"\"list\"").is_some() { &["list", "also"] } else { &[] };
    let mut found = Vec::new();
    let mut take = |object: Object| found.extend(object.get("n").map(ToString::to_string));
    let (course, failed) = split(&mut Pieces { text, piece }, keys, &mut Objects { take: &mut take });
    assert!(failed.is_none());
    (found, course)
}

#[test]
fn objects_come_out_however_the_file_is_read() {
    let cases = [
        (r#"[{"n":1},{"n":"} ] \" {","a":{"b":[{}]}} , {"n":3}]"#, vec!["1", r#""} ] \" {""#, "3"], 0, true),
        (r#" {"x":[{"n":0}],"list" : [ {"n":1}, {"n":2} ], "y":[{"n":9}]}"#, vec!["1", "2"], 0, true),
        (r#"{"a":"list","also": [{"n":1}],"list":[{"n":9}]}"#, vec!["1"], 0, true),
        (r#"{"n":1} {"n":2}"#, vec!["1", "2"], 0, true),
        (r#"[{"n":1},{"n":2},{"n":3"#, vec!["1", "2"], 1, false),
        (r#"[{"n":1},{"n":2,"a":{"b":1},{"n":3},{"n":4}]"#, vec!["1", "3", "4"], 1, true),
        (r#"[{"n":1},{"n":2,"a":{"b":{},"c":[1,2],{"n":3},{"n":4}]"#, vec!["1", "3", "4"], 1, true),
        (r#"[{"n":1},{"a":[{"b":1},2],{"n":3},{"n":4}]"#, vec!["1", "3", "4"], 1, true),
        (r#"[{"n":1},{"n":"2},{"n":3},{"n":4}]"#, vec!["1", "3", "4"], 1, true),
        (r#"[{"n":1},{"n":NaN,"a":{"b":1}},{"n":3}]"#, vec!["1", "null", "3"], 0, true),
        (r#"[{"n":1},{"n":2 3,"a":{"b":1}},{"n":3}]"#, vec!["1", "3"], 1, true),
        (r#"[{"n":1,"n":2},{"n":"3}"#, vec!["2"], 1, false),
        ("[", vec![], 0, false),
    ];
    for (text, expected, spoilt, complete) in cases {
        for piece in [1, 2, 7, 1000] {
            let (found, course) = cut(text.as_bytes(), piece);
            assert_eq!(found, expected, "{text}");
            assert_eq!(course, Some(Course { spoilt, complete }), "{text}");
        }
    }
    for nothing in [r#"{"n":[{"n":1}],"list":{}}"#, "", "x"] {
        assert_eq!(cut(nothing.as_bytes(), 3), (vec![], None), "{nothing}");
    }
}

#[test]
fn chunks_do_not_show() {
    let object = |index: usize| format!("{{\"n\":\"{}\"}}", "}{\\\"".repeat(index % 977));
    let text = format!("[{}]", (0..3000).map(object).collect::<Vec<_>>().join(",\n"));
    assert!(text.len() > 4 * CHUNK);
    let (found, course) = cut(text.as_bytes(), 1 << 20);
    assert!(found.len() == 3000 && course == Some(Course { spoilt: 0, complete: true }));
    assert!(found.iter().enumerate().all(|(index, text)| text.len() == 2 + 4 * (index % 977)));
}

#[test]
fn what_is_cut_off_keeps_its_whole_objects() {
    let whole = r#"{"list":[{"n":1},{"n":2}]}"#;
    for end in 9..=whole.len() {
        let (found, course) = cut(&whole.as_bytes()[..end], 1000);
        assert_eq!(course.unwrap().complete, end >= whole.len() - 1, "{}", &whole[..end]);
        assert_eq!(found.len(), usize::from(end >= 16) + usize::from(end >= 24), "{}", &whole[..end]);
    }
}

#[test]
fn what_stands_before_the_list_is_handed_over() {
    struct Head(Vec<u8>);
    impl Receive for Head {
        fn head(&mut self, text: &[u8]) {
            self.0 = text.to_vec();
        }
        fn begin(&mut self, _: &[u8]) -> Begin {
            Begin::Broken
        }
        fn broken(&mut self, _: &[u8]) -> bool {
            true
        }
    }
    let mut head = Head(Vec::new());
    let (course, _) = split(&mut &b"{\"a\": 1, \"list\": [{}, {\"b\":[}]}]"[..], &["list"], &mut head);
    assert_eq!((&head.0[..], course), (&b"{\"a\": 1, "[..], Some(Course { spoilt: 0, complete: true })));
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let (found, course) = cut(b"[{\"n\":\"a\xff\"}]", 3);
    assert_eq!((found, course.unwrap().spoilt), (vec!["\"a\u{fffd}\"".to_owned()], 0));
}

#[test]
fn braces_without_end_take_no_more_than_linear_time() {
    for opening in [r#"{"a":"#, r#"{"ph":{"x":1},"a":"#, r#"{"a":[],"b":{"c":"#] {
        let mut text = b"[".to_vec();
        text.extend(opening.as_bytes().repeat(300_000 / opening.len()));
        text.extend(b"{\"n\":1}");
        let (found, course) = cut(&text, CHUNK);
        assert_eq!((found, course.unwrap().spoilt), (vec!["1".to_owned()], 1), "{opening}");
    }
}

#[test]
fn extents_are_told_by_braces_outside_of_strings() {
    assert_eq!(extent(br#"{"}\"":{},x}}"#), Extent::Ends(12));
    assert_eq!(extent(br#"{"a":{}"#), Extent::Open);
    assert_eq!(extent(br#"{"a\"#), Extent::Open);
    assert_eq!(extent(&b"{".repeat(100)), Extent::TooDeep(DEEPEST));
}

#[test]
fn numbers_may_be_texts() {
    let value: Value = serde_json::from_str(r#"[1, " 2.5", "x", null, "inf"]"#).unwrap();
    let numbers: Vec<_> = (0..5).map(|index| number(value.get(index))).collect();
    assert_eq!(numbers, [Some(1.0), Some(2.5), None, None, None]);
}

#[test]
fn what_profilers_write_becomes_json() {
    let text = b"{\"a\": nan, \"b\": -inf, \"c\": 1.5e-3, \"d\": true, \"e\xff\": \"x\ty\\d\\\"\", \"f\": NaN, \"g\": -Infinity}";
    let value: Value = serde_json::from_str(&repair(text)).unwrap();
    assert_eq!(value["a"], Value::Null);
    assert_eq!(value["b"], Value::Null);
    assert_eq!(value["c"], 1.5e-3);
    assert_eq!(value["d"], true);
    assert_eq!(value["e\u{fffd}"], "x y\\d\"");
    assert_eq!(value["g"], Value::Null);
}

#[test]
fn what_is_json_stays_what_it_is() {
    let text = r#"{"a":[1,-2.5e+10,{"b":"nan \\ \" inf"}],"c":null,"d":1E5}"#;
    assert_eq!(repair(text.as_bytes()), text);
}
