//! The parts of ONNX's messages that are read. `wire` leaves out all other fields before these are decoded.

/// Messages of protobuf, a line for each field: name and type, number, and how it is encoded.
#[macro_export]
macro_rules! messages {
    ($($(#[$about:meta])* $message:ident {
        $($(#[$note:meta])* $field:ident: $type:ty => $number:tt ($($how:tt)+);)*
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, PartialEq, ::prost::Message)]
        pub(crate) struct $message {
            $($(#[$note])* #[prost($($how)+, tag = $number)] pub(crate) $field: $type,)*
        }
    )*};
}

messages! {
    ModelProto {
        ir_version: i64 => "1" (int64);
        producer_name: String => "2" (string);
        producer_version: String => "3" (string);
        graph: Option<GraphProto> => "7" (message, optional);
        opsets: Vec<OperatorSet> => "8" (message, repeated);
        functions: Vec<FunctionProto> => "25" (message, repeated);
    }

    /// The version of the operators of one domain; the domain of the standard ones is empty.
    OperatorSet {
        domain: String => "1" (string);
        version: i64 => "2" (int64);
    }

    GraphProto {
        nodes: Vec<NodeProto> => "1" (message, repeated);
        name: String => "2" (string);
        initializers: Vec<TensorProto> => "5" (message, repeated);
        inputs: Vec<ValueInfo> => "11" (message, repeated);
        outputs: Vec<ValueInfo> => "12" (message, repeated);
        values: Vec<ValueInfo> => "13" (message, repeated);
        sparse_initializers: Vec<SparseTensor> => "15" (message, repeated);
    }

    NodeProto {
        /// Names of tensors; empty for an optional one that is left out.
        inputs: Vec<String> => "1" (string, repeated);
        outputs: Vec<String> => "2" (string, repeated);
        name: String => "3" (string);
        op: String => "4" (string);
        attributes: Vec<AttributeProto> => "5" (message, repeated);
        domain: String => "7" (string);
    }

    AttributeProto {
        name: String => "1" (string);
        float: f32 => "2" (float);
        int: i64 => "3" (int64);
        text: Vec<u8> => "4" (bytes = "vec");
        tensor: Option<TensorProto> => "5" (message, optional);
        /// The body of a loop or a branch.
        graph: Option<GraphProto> => "6" (message, optional);
        floats: Vec<f32> => "7" (float, repeated);
        ints: Vec<i64> => "8" (int64, repeated);
        /// Within a function: the attribute of the call whose value this one takes.
        of_caller: String => "21" (string);
    }

    TensorProto {
        dims: Vec<i64> => "1" (int64, repeated);
        data_type: i32 => "2" (int32);
        floats: Vec<f32> => "4" (float, repeated);
        /// Also of shorter integers and truth values.
        ints: Vec<i32> => "5" (int32, repeated);
        longs: Vec<i64> => "7" (int64, repeated);
        name: String => "8" (string);
        /// Little-endian.
        raw_data: Vec<u8> => "9" (bytes = "vec");
        doubles: Vec<f64> => "10" (double, repeated);
    }

    SparseTensor {
        values: Option<TensorProto> => "1" (message, optional);
        dims: Vec<i64> => "3" (int64, repeated);
    }

    ValueInfo {
        name: String => "1" (string);
        kind: Option<TypeProto> => "2" (message, optional);
    }

    TypeProto {
        tensor: Option<TensorType> => "1" (message, optional);
    }

    TensorType {
        shape: Option<TensorShape> => "2" (message, optional);
    }

    TensorShape {
        dims: Vec<Dimension> => "1" (message, repeated);
    }

    /// A number, a name, or neither.
    Dimension {
        value: Option<i64> => "1" (int64, optional);
        name: String => "2" (string);
    }

    /// An operator that the model defines by other operators.
    FunctionProto {
        name: String => "1" (string);
        inputs: Vec<String> => "4" (string, repeated);
        outputs: Vec<String> => "5" (string, repeated);
        nodes: Vec<NodeProto> => "7" (message, repeated);
        domain: String => "10" (string);
        defaults: Vec<AttributeProto> => "11" (message, repeated);
    }
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
