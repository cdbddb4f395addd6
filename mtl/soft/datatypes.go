package soft

import "github.com/ingot-metal/ingot/mtl"

// vectorTypes are the vector types that have a number in MTLDataType, as the source writes them.
var vectorTypes = map[string]mtl.DataType{
	"float2": mtl.DataTypeFloat2, "float3": mtl.DataTypeFloat3, "float4": mtl.DataTypeFloat4,
	"half2": mtl.DataTypeHalf2, "half3": mtl.DataTypeHalf3, "half4": mtl.DataTypeHalf4,
	"bfloat2": mtl.DataTypeBFloat2, "bfloat3": mtl.DataTypeBFloat3, "bfloat4": mtl.DataTypeBFloat4,
	"int2": mtl.DataTypeInt2, "int3": mtl.DataTypeInt3, "int4": mtl.DataTypeInt4,
	"uint2": mtl.DataTypeUInt2, "uint3": mtl.DataTypeUInt3, "uint4": mtl.DataTypeUInt4,
	"short2": mtl.DataTypeShort2, "short3": mtl.DataTypeShort3, "short4": mtl.DataTypeShort4,
	"ushort2": mtl.DataTypeUShort2, "ushort3": mtl.DataTypeUShort3, "ushort4": mtl.DataTypeUShort4,
	"char2": mtl.DataTypeChar2, "char3": mtl.DataTypeChar3, "char4": mtl.DataTypeChar4,
	"uchar2": mtl.DataTypeUChar2, "uchar3": mtl.DataTypeUChar3, "uchar4": mtl.DataTypeUChar4,
	"bool2": mtl.DataTypeBool2, "bool3": mtl.DataTypeBool3, "bool4": mtl.DataTypeBool4,
	"long2": mtl.DataTypeLong2, "long3": mtl.DataTypeLong3, "long4": mtl.DataTypeLong4,
	"ulong2": mtl.DataTypeULong2, "ulong3": mtl.DataTypeULong3, "ulong4": mtl.DataTypeULong4,
}
