package oracle

import "math"

// RMSNorm normalises each row by its root mean square:
//
//	out[r][i] = x[r][i] / sqrt(mean_i(x[r][i]²) + eps) · weight[i]
//
// eps is inside the root. An operation that stores bfloat16 rounds the result with [RoundBF16s].
func RMSNorm[T, W Real](x []T, weight []W, rows, dim int, eps float64) []float64 {
	out := make([]float64, rows*dim)
	for r := range rows {
		row := x[r*dim : (r+1)*dim]
		rms := rootMeanSquare(row, eps)
		for i, v := range row {
			out[r*dim+i] = float64(v) / rms * float64(weight[i])
		}
	}
	return out
}

// RMSNormResidualAdd adds a normalised branch to a residual stream and scales the sum:
//
//	out = layerScale · (residual + RMSNorm(x, weight))
func RMSNormResidualAdd[R, T, W Real](residual []R, x []T, weight []W, rows, dim int, eps, layerScale float64) []float64 {
	out := RMSNorm(x, weight, rows, dim, eps)
	for i := range out {
		out[i] = layerScale * (float64(residual[i]) + out[i])
	}
	return out
}

func rootMeanSquare[T Real](row []T, eps float64) float64 {
	sum := 0.0
	for _, v := range row {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum/float64(len(row)) + eps)
}
