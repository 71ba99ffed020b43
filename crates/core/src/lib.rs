//! The domain of Stepcast: quantities, models, devices, clusters, strategies, scenarios and predictions. No input or
//! output, no clock, no threads, no logging: text in, values out.
//!
//! The modules stand on four floors, and a module uses only those above it in the list (a test checks it):
//!
//! 1. plain values and how files write them: `quantity` to `precision`;
//! 2. words of the field: `fitted` (models fitted to measurements), `machine`, `strategy`, `prediction`;
//! 3. rates of devices that nobody has measured: `prior`, and the work of a model in a step;
//! 4. the file and its consequences: `scenario`, `compute` (computing times of a scenario's workers), `method`.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

pub mod compute;
pub mod fault;
pub mod files;
pub mod fitted;
pub mod keys;
pub mod machine;
pub mod method;
pub mod model;
pub mod pass;
mod peak;
pub mod precision;
pub mod prediction;
pub mod prior;
pub mod profile;
pub mod quantity;
pub mod scenario;
pub mod speed;
pub mod strategy;
pub mod suggest;
pub mod text;
pub mod uncertain;
pub mod workload;

/// Names of an enumeration's variants, in order: the list of variants, the name of each, the variant of a name, and `Display`.
#[macro_export]
macro_rules! variant_names {
    ($type:ident { $($variant:ident = $name:literal,)* }) => {
        #[allow(dead_code, reason = "few enumerations need all of them")]
        impl $type {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The variant with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|own| own.name() == name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
