//! The parts of ONNX's messages that are read. `wire` leaves out all other fields before these are decoded.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelProto {
    #[prost(int64, tag = "1")]
    pub(super) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(super) producer_name: String,
    #[prost(string, tag = "3")]
    pub(super) producer_version: String,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opsets: Vec<OperatorSet>,
    #[prost(message, repeated, tag = "25")]
    pub(super) functions: Vec<FunctionProto>,
}

/// The version of the operators of one domain; the domain of the standard ones is empty.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSet {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(int64, tag = "2")]
    pub(super) version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) nodes: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializers: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(super) inputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(super) outputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "13")]
    pub(super) values: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "15")]
    pub(super) sparse_initializers: Vec<SparseTensor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeProto {
    /// Names of tensors; empty for an optional one that is left out.
    #[prost(string, repeated, tag = "1")]
    pub(super) inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) outputs: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) op: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attributes: Vec<AttributeProto>,
    #[prost(string, tag = "7")]
    pub(super) domain: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(float, tag = "2")]
    pub(super) float: f32,
    #[prost(int64, tag = "3")]
    pub(super) int: i64,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) text: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub(super) tensor: Option<TensorProto>,
    /// The body of a loop or a branch.
    #[prost(message, optional, tag = "6")]
    pub(super) graph: Option<GraphProto>,
    #[prost(float, repeated, tag = "7")]
    pub(super) floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub(super) ints: Vec<i64>,
    /// Within a function: the attribute of the call whose value this one takes.
    #[prost(string, tag = "21")]
    pub(super) of_caller: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(super) data_type: i32,
    #[prost(float, repeated, tag = "4")]
    pub(super) floats: Vec<f32>,
    /// Also of shorter integers and truth values.
    #[prost(int32, repeated, tag = "5")]
    pub(super) ints: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(super) longs: Vec<i64>,
    #[prost(string, tag = "8")]
    pub(super) name: String,
    /// Little-endian.
    #[prost(bytes = "vec", tag = "9")]
    pub(super) raw_data: Vec<u8>,
    #[prost(double, repeated, tag = "10")]
    pub(super) doubles: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SparseTensor {
    #[prost(message, optional, tag = "1")]
    pub(super) values: Option<TensorProto>,
    #[prost(int64, repeated, tag = "3")]
    pub(super) dims: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) kind: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorType {
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<TensorShape>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorShape {
    #[prost(message, repeated, tag = "1")]
    pub(super) dims: Vec<Dimension>,
}

/// A number, a name, or neither.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Dimension {
    #[prost(int64, optional, tag = "1")]
    pub(super) value: Option<i64>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// An operator that the model brings along, made of others.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FunctionProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "4")]
    pub(super) inputs: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub(super) outputs: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    pub(super) nodes: Vec<NodeProto>,
    #[prost(string, tag = "10")]
    pub(super) domain: String,
    /// Attributes with their defaults.
    #[prost(message, repeated, tag = "11")]
    pub(super) defaults: Vec<AttributeProto>,
}

/// Element types of `TensorProto.DataType`.
pub(super) mod element {
    pub(in super::super) const FLOAT: i32 = 1;
    pub(in super::super) const UINT8: i32 = 2;
    pub(in super::super) const INT32: i32 = 6;
    pub(in super::super) const INT64: i32 = 7;
    pub(in super::super) const BOOL: i32 = 9;
    pub(in super::super) const FLOAT16: i32 = 10;
    pub(in super::super) const DOUBLE: i32 = 11;
    pub(in super::super) const BFLOAT16: i32 = 16;

    /// Whether parameters are stored so.
    pub(in super::super) fn is_real(kind: i32) -> bool {
        matches!(kind, FLOAT | FLOAT16 | DOUBLE | BFLOAT16)
    }
}
