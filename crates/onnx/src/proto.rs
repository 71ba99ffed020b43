//! The parts of ONNX's messages that are read. `wire` leaves out all other fields before these are decoded.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelProto {
    #[prost(int64, tag = "1")]
    pub(crate) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(crate) producer_name: String,
    #[prost(string, tag = "3")]
    pub(crate) producer_version: String,
    #[prost(message, optional, tag = "7")]
    pub(crate) graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) opsets: Vec<OperatorSet>,
    #[prost(message, repeated, tag = "25")]
    pub(crate) functions: Vec<FunctionProto>,
}

/// The version of the operators of one domain; the domain of the standard ones is empty.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OperatorSet {
    #[prost(string, tag = "1")]
    pub(crate) domain: String,
    #[prost(int64, tag = "2")]
    pub(crate) version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) nodes: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) initializers: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) inputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) outputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) values: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) sparse_initializers: Vec<SparseTensor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeProto {
    /// Names of tensors; empty for an optional one that is left out.
    #[prost(string, repeated, tag = "1")]
    pub(crate) inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) outputs: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
    #[prost(string, tag = "4")]
    pub(crate) op: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attributes: Vec<AttributeProto>,
    #[prost(string, tag = "7")]
    pub(crate) domain: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttributeProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(float, tag = "2")]
    pub(crate) float: f32,
    #[prost(int64, tag = "3")]
    pub(crate) int: i64,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) text: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub(crate) tensor: Option<TensorProto>,
    /// The body of a loop or a branch.
    #[prost(message, optional, tag = "6")]
    pub(crate) graph: Option<GraphProto>,
    #[prost(float, repeated, tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub(crate) ints: Vec<i64>,
    /// Within a function: the attribute of the call whose value this one takes.
    #[prost(string, tag = "21")]
    pub(crate) of_caller: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    #[prost(float, repeated, tag = "4")]
    pub(crate) floats: Vec<f32>,
    /// Also of shorter integers and truth values.
    #[prost(int32, repeated, tag = "5")]
    pub(crate) ints: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(crate) longs: Vec<i64>,
    #[prost(string, tag = "8")]
    pub(crate) name: String,
    /// Little-endian.
    #[prost(bytes = "vec", tag = "9")]
    pub(crate) raw_data: Vec<u8>,
    #[prost(double, repeated, tag = "10")]
    pub(crate) doubles: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SparseTensor {
    #[prost(message, optional, tag = "1")]
    pub(crate) values: Option<TensorProto>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) dims: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) kind: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorType {
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShape>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorShape {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dims: Vec<Dimension>,
}

/// A number, a name, or neither.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Dimension {
    #[prost(int64, optional, tag = "1")]
    pub(crate) value: Option<i64>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
}

/// An operator that the model defines by other operators.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) inputs: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub(crate) outputs: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) nodes: Vec<NodeProto>,
    #[prost(string, tag = "10")]
    pub(crate) domain: String,
    /// Attributes with their defaults.
    #[prost(message, repeated, tag = "11")]
    pub(crate) defaults: Vec<AttributeProto>,
}

/// Element types of `TensorProto.DataType`.
pub(crate) mod element {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const UINT8: i32 = 2;
    pub(crate) const INT32: i32 = 6;
    pub(crate) const INT64: i32 = 7;
    pub(crate) const BOOL: i32 = 9;
    pub(crate) const FLOAT16: i32 = 10;
    pub(crate) const DOUBLE: i32 = 11;
    pub(crate) const BFLOAT16: i32 = 16;

    /// Whether parameters may have this type.
    pub(crate) fn is_real(kind: i32) -> bool {
        matches!(kind, FLOAT | FLOAT16 | DOUBLE | BFLOAT16)
    }
}
