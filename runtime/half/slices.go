package half

// EncodeFloat16 converts src into dst and reports how many numbers it converted: the lesser of both lengths.
func EncodeFloat16(dst []Float16, src []float32) int {
	n := min(len(dst), len(src))
	for i, f := range src[:n] {
		dst[i] = Float16FromFloat32(f)
	}
	return n
}

// DecodeFloat16 converts src into dst and reports how many numbers it converted: the lesser of both lengths.
func DecodeFloat16(dst []float32, src []Float16) int {
	n := min(len(dst), len(src))
	for i, h := range src[:n] {
		dst[i] = h.Float32()
	}
	return n
}

// EncodeBFloat16 converts src into dst and reports how many numbers it converted: the lesser of both lengths.
func EncodeBFloat16(dst []BFloat16, src []float32) int {
	n := min(len(dst), len(src))
	for i, f := range src[:n] {
		dst[i] = BFloat16FromFloat32(f)
	}
	return n
}

// DecodeBFloat16 converts src into dst and reports how many numbers it converted: the lesser of both lengths.
func DecodeBFloat16(dst []float32, src []BFloat16) int {
	n := min(len(dst), len(src))
	for i, b := range src[:n] {
		dst[i] = b.Float32()
	}
	return n
}

// Float16s is src in a new slice of Float16.
func Float16s(src []float32) []Float16 {
	dst := make([]Float16, len(src))
	EncodeFloat16(dst, src)
	return dst
}

// BFloat16s is src in a new slice of BFloat16.
func BFloat16s(src []float32) []BFloat16 {
	dst := make([]BFloat16, len(src))
	EncodeBFloat16(dst, src)
	return dst
}

// Float32s is src in a new slice of float32.
func Float32s[T Float16 | BFloat16](src []T) []float32 {
	dst := make([]float32, len(src))
	switch s := any(src).(type) {
	case []Float16:
		DecodeFloat16(dst, s)
	case []BFloat16:
		DecodeBFloat16(dst, s)
	}
	return dst
}
