//! Turns a model file into layers: blocks, repetitions and formulas are expanded here.

use super::formula::{self, Value};
use super::{BlockFile, LayerFile, ops};
use crate::fault::KeyPath;
use crate::model::op::Op;
use crate::model::shape::ShapeError;
use crate::model::{Builder, LayerId};
use crate::suggest;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

/// Deepest nesting of blocks.
const DEEPEST: u32 = 16;

/// Layers and inputs of one model, together; more than any network has, and few enough to hold.
const MOST_STEPS: u64 = 2_000_000;

pub(super) type Values = BTreeMap<String, Value>;
pub(super) type Blocks = BTreeMap<String, BlockFile>;

/// A layer that cannot be built, and its place in the file.
pub(in crate::model) struct LayerFault {
    pub(in crate::model) path: KeyPath,
    pub(in crate::model) error: ShapeError,
}

/// Adds an input and `layers` to `builder`.
pub(in crate::model) fn expand(
    builder: &mut Builder,
    (input, layers): (&[Value], &[LayerFile]),
    blocks: &Blocks,
    values: &Values,
) -> Result<(), LayerFault> {
    let names = HashMap::new();
    let mut expansion = Expansion { builder, blocks, names, order: Vec::new(), steps: 0, depth: 0 };
    let at_input = |error: ShapeError| LayerFault { path: KeyPath::of("input"), error: error.at("input") };
    let mut scope = Scope { values: values.clone(), children: Some(Cell::new(0)), ..Scope::default() };
    let dims = expansion.shape(&Value::List(input.to_vec()), &scope).map_err(at_input)?;
    let id = expansion.builder.input("input", &dims).map_err(at_input)?;
    expansion.bind("input".to_owned(), vec![id]);
    scope.input = Some(vec![id]);
    expansion.list(layers, &scope, &KeyPath::of("layers")).map(drop)
}

/// The values that formulas see, and the block to which names are relative.
#[derive(Default)]
struct Scope<'a> {
    values: Values,
    /// The names of all blocks around it, joined by dots.
    prefix: String,
    /// The input of its block; none in a repetition, which sees the input of the block around it.
    input: Option<Vec<LayerId>>,
    /// Number of layers and named blocks added so far; none if the scope uses the names of the scope around it.
    children: Option<Cell<u64>>,
    outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    fn chain(&self) -> impl Iterator<Item = &Scope<'a>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    fn input(&self) -> &[LayerId] {
        self.chain().find_map(|scope| scope.input.as_deref()).unwrap_or_default()
    }

    fn counter(&self) -> Option<&Cell<u64>> {
        self.chain().find_map(|scope| scope.children.as_ref())
    }
}

struct Expansion<'a> {
    builder: &'a mut Builder,
    blocks: &'a Blocks,
    /// Outputs of layers and blocks, by their full names.
    names: HashMap<String, Vec<LayerId>>,
    /// These names in the order of computation.
    order: Vec<String>,
    steps: u64,
    depth: u32,
}

impl<'a> Expansion<'a> {
    /// Adds the layers of a list; returns the output of the last one.
    fn list(
        &mut self,
        layers: &[LayerFile],
        scope: &Scope<'_>,
        path: &KeyPath,
    ) -> Result<Vec<LayerId>, LayerFault> {
        let mut last = scope.input().to_vec();
        for (index, layer) in layers.iter().enumerate() {
            let path = path.clone().index(index);
            let fault = |error: ShapeError, name: &str| {
                let given = error.field.filter(|field| layer.gives(field));
                let path = given.map_or_else(|| path.clone(), |field| path.clone().key(field));
                LayerFault { path, error: error.at(name) }
            };
            let plain = layer.plain_name(index);
            let rounds = self.rounds(layer, scope).map_err(|error| fault(error, &plain))?;
            for values in rounds {
                let prefix = scope.prefix.clone();
                let scope = Scope { values, prefix, outer: Some(scope), ..Scope::default() };
                let (name, inputs, is_present) =
                    self.place(layer, index, &scope, &last).map_err(|error| fault(error, &plain))?;
                last = if !is_present {
                    inputs.into_iter().take(1).collect()
                } else if layer.block.is_some() {
                    let block = self.block(layer, &name, inputs, &scope);
                    let (file, inner, path) = block.map_err(|error| fault(error, &name))?;
                    self.depth += 1;
                    let output = self.list(&file.layers, &inner, &path)?;
                    self.depth -= 1;
                    output
                } else {
                    self.layer(layer, &name, &inputs, &scope)
                        .map(|id| vec![id])
                        .map_err(|error| fault(error, &name))?
                };
                if is_present && !(layer.block.is_some() && layer.name.is_none()) {
                    scope.counter().inspect(|counter| counter.set(counter.get() + 1));
                }
                if layer.block.is_none() || layer.name.is_some() {
                    self.bind(name, last.clone());
                }
            }
        }
        Ok(last)
    }

    fn rounds(&self, layer: &LayerFile, scope: &Scope<'_>) -> Result<Vec<Values>, ShapeError> {
        let count = match (&layer.repeat, layer.each.as_ref().and_then(|each| each.iter().next())) {
            (None, None) => return Ok(vec![Values::new()]),
            (Some(_), Some(_)) => {
                return Err(ShapeError::in_field(
                    "each",
                    "`repeat` and `each` both repeat it",
                    "keep one of them",
                ));
            }
            (Some(count), None) => self.number("repeat", count, scope)?,
            (None, Some((name, column))) => self.column(name, column, scope)?.len() as u64,
        };
        if count > MOST_STEPS {
            return Err(too_large());
        }
        let mut rounds: Vec<Values> =
            (0..count).map(|i| Values::from([("i".to_owned(), Value::Number(i))])).collect();
        for (name, column) in layer.each.iter().flatten() {
            let column = self.column(name, column, scope)?;
            if column.len() != rounds.len() {
                let reason = format!("`{name}` has {} values and not {}", column.len(), rounds.len());
                return Err(ShapeError::in_field("each", reason, "give lists of one length"));
            }
            for (round, value) in rounds.iter_mut().zip(column) {
                round.insert(name.clone(), value);
            }
        }
        Ok(rounds)
    }

    fn column(&self, name: &str, column: &Value, scope: &Scope<'_>) -> Result<Vec<Value>, ShapeError> {
        match self.evaluate(column, scope)? {
            Value::List(values) => Ok(values),
            _ => Err(ShapeError::in_field(
                "each",
                format!("`{name}` is no list"),
                "give a value for each repetition",
            )),
        }
    }

    /// The full name of a layer or block, its inputs, and whether it exists.
    fn place(
        &mut self,
        layer: &LayerFile,
        index: usize,
        scope: &Scope<'_>,
        last: &[LayerId],
    ) -> Result<(String, Vec<LayerId>, bool), ShapeError> {
        self.spend(1)?;
        let name = match (&layer.name, &layer.block) {
            (Some(name), _) => joined(&scope.prefix, &self.text(name, scope)?),
            (None, Some(_)) => scope.prefix.clone(),
            (None, None) => joined(&scope.prefix, &layer.plain_name(index)),
        };
        let inputs = match &layer.inputs {
            None => last.to_vec(),
            Some(names) => {
                let mut inputs = Vec::new();
                for input in names {
                    inputs.extend(self.find(&self.text(input, scope)?, scope)?);
                }
                self.spend(inputs.len())?;
                inputs
            }
        };
        let is_present = match layer.when.as_ref().map(|when| self.evaluate(when, scope)).transpose()? {
            None => true,
            Some(Value::Truth(truth)) => truth,
            Some(_) => {
                let remedy = "compare numbers, as in \"stride > 1\"";
                return Err(ShapeError::in_field("when", "`when` is neither true nor false", remedy));
            }
        };
        Ok((name, inputs, is_present))
    }

    /// The block that `layer` uses, with the scope of its layers.
    fn block<'s>(
        &self,
        layer: &LayerFile,
        name: &str,
        inputs: Vec<LayerId>,
        scope: &'s Scope<'s>,
    ) -> Result<(&'a BlockFile, Scope<'s>, KeyPath), ShapeError> {
        let stray = layer.settings().map(|(key, _)| key).next();
        if let Some(key) = stray.or_else(|| (!layer.op.is_empty()).then_some("op")) {
            let reason = format!("{key} does not belong to a block");
            return Err(ShapeError::in_field(key, reason, "give the values of a block in `with`"));
        }
        if self.depth >= DEEPEST {
            let reason = format!("blocks nest more than {DEEPEST} deep");
            return Err(ShapeError::in_field("block", reason, "a block cannot use itself"));
        }
        let wanted = self.text(layer.block.as_deref().unwrap_or_default(), scope)?;
        let Some(file) = self.blocks.get(&wanted) else {
            let known = self.blocks.keys().map(String::as_str);
            let remedy = suggest::remedy(&wanted, known, "describe it under `blocks`").to_string();
            return Err(ShapeError::in_field("block", format!("there is no block \"{wanted}\""), remedy));
        };
        let mut inner = Scope {
            prefix: name.to_owned(),
            input: Some(inputs),
            children: layer.name.is_some().then(Cell::default),
            outer: Some(scope),
            ..Scope::default()
        };
        for (key, value) in layer.with.iter().flatten() {
            inner.values.insert(key.clone(), self.evaluate(value, scope)?);
        }
        for (key, value) in file.with.iter().flatten() {
            if !inner.values.contains_key(key) {
                let value = self.evaluate(value, &inner)?;
                inner.values.insert(key.clone(), value);
            }
        }
        Ok((file, inner, KeyPath::of("blocks").key(&wanted).key("layers")))
    }

    fn layer(
        &mut self,
        layer: &LayerFile,
        name: &str,
        inputs: &[LayerId],
        scope: &Scope<'_>,
    ) -> Result<LayerId, ShapeError> {
        layer.check_keys(&self.text(&layer.op, scope)?)?;
        let shape = |expansion: &Self| match &layer.shape {
            Some(shape) => expansion.shape(shape, scope),
            None => Err(ops::missing(&layer.op, "shape")),
        };
        if layer.op == "input" {
            if layer.inputs.is_some() {
                return Err(ShapeError::in_inputs("an input reads no other layer", "remove inputs"));
            }
            let dims = shape(self)?;
            self.builder.input(name, &dims)
        } else {
            match layer.operation(&self.text(&layer.op, scope)?, &|value| self.evaluate(value, scope))? {
                Op::Counted(cost) => {
                    let dims = shape(self)?;
                    self.builder.counted(name, inputs, &dims, cost)
                }
                op => self.builder.add(name, op, inputs),
            }
        }
    }

    /// The outputs of the layers with this name: nearest block first, then the blocks around it. A star stands for any
    /// part of a name without dots.
    fn find(&mut self, name: &str, scope: &Scope<'_>) -> Result<Vec<LayerId>, ShapeError> {
        if name == "input" {
            return Ok(scope.input().to_vec());
        }
        for full in scope.chain().map(|scope| joined(&scope.prefix, name)) {
            if let Some(found) = self.names.get(&full) {
                return Ok(found.clone());
            }
        }
        if name.contains('*') {
            for pattern in scope.chain().map(|scope| joined(&scope.prefix, name)) {
                self.spend(self.order.len())?;
                let all = self.order.iter().filter(|full| matches(&pattern, full));
                let found: Vec<LayerId> = all.flat_map(|full| &self.names[full]).copied().collect();
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        let known = self.order.iter().map(String::as_str);
        let otherwise = "inputs are the names of layers before this one";
        Err(ShapeError::in_inputs(
            format!("there is no layer \"{name}\" before it"),
            suggest::remedy(name, known, otherwise).to_string(),
        ))
    }

    fn bind(&mut self, name: String, output: Vec<LayerId>) {
        if self.names.insert(name.clone(), output).is_none() {
            self.order.push(name);
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), ShapeError> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > MOST_STEPS { Err(too_large()) } else { Ok(()) }
    }

    fn evaluate(&self, value: &Value, scope: &Scope<'_>) -> Result<Value, ShapeError> {
        formula::evaluate(value, &|name, index| self.lookup(name, index, scope))
    }

    fn text(&self, text: &str, scope: &Scope<'_>) -> Result<String, ShapeError> {
        formula::interpolate(text, &|name, index| self.lookup(name, index, scope))
    }

    fn lookup(&self, name: &str, index: Option<u64>, scope: &Scope<'_>) -> Option<Value> {
        match index {
            None if name == "n" => scope.counter().map(|counter| Value::Number(counter.get())),
            None => scope.chain().find_map(|scope| scope.values.get(name)).cloned(),
            Some(index) => {
                let output = match name {
                    "input" => scope.input(),
                    _ => scope.chain().find_map(|scope| self.names.get(&joined(&scope.prefix, name)))?,
                };
                let shape = self.builder.shape(*output.first()?)?;
                shape.dims().get(usize::try_from(index).ok()?).copied().map(Value::Number)
            }
        }
    }

    fn number(&self, field: &'static str, value: &Value, scope: &Scope<'_>) -> Result<u64, ShapeError> {
        ops::number(field, &self.evaluate(value, scope)?)
    }

    fn shape(&self, value: &Value, scope: &Scope<'_>) -> Result<Vec<u64>, ShapeError> {
        match self.evaluate(value, scope)? {
            Value::List(dims) => dims.iter().map(|dim| ops::number("shape", dim)).collect(),
            _ => {
                Err(ShapeError::in_field("shape", "a shape is a list of sizes", "write it as [3, 224, 224]"))
            }
        }
    }
}

fn too_large() -> ShapeError {
    ShapeError::new("the model has too many layers", "check its repetitions for a slip of the keyboard")
}

/// A name within a block; an empty name is the name of the block.
fn joined(prefix: &str, name: &str) -> String {
    match (prefix, name) {
        ("", _) => name.to_owned(),
        (_, "") => prefix.to_owned(),
        _ => format!("{prefix}.{name}"),
    }
}

/// Whether `name` has the parts of `pattern`, in which a star stands for any letters but dots.
fn matches(pattern: &str, name: &str) -> bool {
    let (mut patterns, mut names) = (pattern.split('.'), name.split('.'));
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) => {
                let fits = match pattern.split_once('*') {
                    None => pattern == name,
                    Some((before, after)) => {
                        name.len() >= before.len() + after.len()
                            && name.starts_with(before)
                            && name.ends_with(after)
                    }
                };
                if !fits {
                    return false;
                }
            }
            _ => return false,
        }
    }
}
