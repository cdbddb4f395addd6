package gemma3

import (
	"math"
	"testing"
)

// This is Gemma 3 in float64, from its definition, with no thought of speed: what the kernels of the decode step are
// measured by.

type dense struct {
	rows, cols int
	w          []float64
}

func (m dense) row(r int) []float64 { return m.w[r*m.cols : (r+1)*m.cols] }

func (m dense) times(x []float64) []float64 {
	y := make([]float64, m.rows)
	for r := range y {
		for c, w := range m.row(r) {
			y[r] += w * x[c]
		}
	}
	return y
}

type oracleLayer struct {
	inputNorm, postAttentionNorm, preFFNNorm, postFFNNorm, queryNorm, keyNorm []float64
	q, k, v, o, gate, up, down                                                dense
}

type oracleWeights struct {
	c      *Config
	embed  dense
	output dense
	norm   []float64
	layers []oracleLayer
}

func loadOracle(t *testing.T, c *Checkpoint) oracleWeights {
	t.Helper()
	cfg := c.Config
	norm := func(name string, n int) []float64 {
		w, err := c.NormWeight(name, n)
		if err != nil {
			t.Fatal(err)
		}
		return widen(w)
	}
	matrix := func(name string, rows, cols int) dense {
		m, err := c.Matrix(name, rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		return dense{rows, cols, dequantise(m)}
	}
	w := oracleWeights{c: cfg, embed: matrix(Embedding, cfg.Vocab, cfg.Hidden), norm: norm(FinalNorm, cfg.Hidden)}
	w.output = w.embed
	if !cfg.Tied {
		w.output = matrix(Output, cfg.Vocab, cfg.Hidden)
	}
	for i := range cfg.Layers {
		name := func(n string) string { return Layer(i, n) }
		w.layers = append(w.layers, oracleLayer{
			inputNorm:         norm(name(InputNorm), cfg.Hidden),
			postAttentionNorm: norm(name(PostAttentionNorm), cfg.Hidden),
			preFFNNorm:        norm(name(PreFFNNorm), cfg.Hidden),
			postFFNNorm:       norm(name(PostFFNNorm), cfg.Hidden),
			queryNorm:         norm(name(QueryNorm), cfg.HeadDim),
			keyNorm:           norm(name(KeyNorm), cfg.HeadDim),
			q:                 matrix(name(QueryProjection), cfg.Heads*cfg.HeadDim, cfg.Hidden),
			k:                 matrix(name(KeyProjection), cfg.KVHeads*cfg.HeadDim, cfg.Hidden),
			v:                 matrix(name(ValueProjection), cfg.KVHeads*cfg.HeadDim, cfg.Hidden),
			o:                 matrix(name(AttentionOutput), cfg.Hidden, cfg.Heads*cfg.HeadDim),
			gate:              matrix(name(Gate), cfg.FFN, cfg.Hidden),
			up:                matrix(name(Up), cfg.FFN, cfg.Hidden),
			down:              matrix(name(Down), cfg.Hidden, cfg.FFN),
		})
	}
	return w
}

// dequantise is w = scale·code + bias; the first of a word's eight codes is in its lowest four bits.
func dequantise(m Matrix) []float64 {
	if m.Q4 == nil {
		return widen(m.Dense)
	}
	out := make([]float64, m.Rows*m.Cols)
	for i := range out {
		code, pair := m.Q4.Packed[i/8]>>(4*(i%8))&15, m.Q4.ScalesBiases[2*(i/m.Q4.GroupSize):]
		out[i] = float64(pair[0].Float32())*float64(code) + float64(pair[1].Float32())
	}
	return out
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// oracleText is a text in progress: the keys and values of all positions so far, per layer and head.
type oracleText struct {
	oracleWeights
	keys, values [][][]float64 // [layer][position][KVHeads·HeadDim]
}

// step feeds one token. It returns the logits of the next one, and the residual stream: the embedding, after every layer
// but the last, and after the final norm.
func (t *oracleText) step(id uint32) (logits []float64, hidden [][]float64) {
	c := t.c
	if t.keys == nil {
		t.keys, t.values = make([][][]float64, c.Layers), make([][][]float64, c.Layers)
	}
	position := len(t.keys[0])
	x := make([]float64, c.Hidden)
	for i, w := range t.embed.row(int(id)) {
		x[i] = w * c.EmbedScale
	}
	hidden = append(hidden, append([]float64{}, x...))
	for i, l := range t.layers {
		add(x, t.norm1(t.attention(i, position, t.norm1(x, l.inputNorm)), l.postAttentionNorm))
		mid := l.gate.times(t.norm1(x, l.preFFNNorm))
		up := l.up.times(t.norm1(x, l.preFFNNorm))
		for j, g := range mid {
			mid[j] = 0.5 * g * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g))) * up[j]
		}
		add(x, t.norm1(l.down.times(mid), l.postFFNNorm))
		if i+1 < len(t.layers) {
			hidden = append(hidden, append([]float64{}, x...))
		}
	}
	x = t.norm1(x, t.norm)
	hidden = append(hidden, x)
	logits = t.output.times(x)
	if c.Softcap > 0 {
		for i, v := range logits {
			logits[i] = c.Softcap * math.Tanh(v/c.Softcap)
		}
	}
	return logits, hidden
}

func add(x, y []float64) {
	for i := range x {
		x[i] += y[i]
	}
}

// norm1 is RMSNorm of one vector: x/sqrt(mean(x²)+eps)·weight.
func (t *oracleText) norm1(x, weight []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+t.c.Eps)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * scale * weight[i]
	}
	return out
}

func (t *oracleText) attention(layer, position int, x []float64) []float64 {
	c, l, d := t.c, t.layers[layer], t.c.HeadDim
	q, k, v := l.q.times(x), l.k.times(x), l.v.times(x)
	for h := range c.Heads {
		t.head(q[h*d:(h+1)*d], l.queryNorm, layer, position)
	}
	for h := range c.KVHeads {
		t.head(k[h*d:(h+1)*d], l.keyNorm, layer, position)
	}
	t.keys[layer] = append(t.keys[layer], k)
	t.values[layer] = append(t.values[layer], v)

	first := 0
	if c.Sliding[layer] {
		first = max(0, position-c.Window+1)
	}
	out := make([]float64, c.Heads*d)
	for h := range c.Heads {
		kv := h / (c.Heads / c.KVHeads) * d
		var scores []float64
		highest := math.Inf(-1)
		for _, key := range t.keys[layer][first:] {
			s := 0.0
			for i := range d {
				s += q[h*d+i] * key[kv+i]
			}
			scores = append(scores, s*c.QueryScale)
			highest = max(highest, s*c.QueryScale)
		}
		total := 0.0
		for j, s := range scores {
			p := math.Exp(s - highest)
			total += p
			for i := range d {
				out[h*d+i] += p * t.values[layer][first+j][kv+i]
			}
		}
		for i := range d {
			out[h*d+i] /= total
		}
	}
	return l.o.times(out)
}

// head normalises a query or key head and rotates it: element p together with p + HeadDim/2. Frequencies and angles are
// float32 numbers, as in the original implementation: they are part of what the model was trained with.
func (t *oracleText) head(x, weight []float64, layer, position int) {
	copy(x, t.norm1(x, weight))
	half := len(x) / 2
	for p := range half {
		frequency := 1 / float32(math.Pow(t.c.Rotary(layer).Theta, float64(p)/float64(half)))
		sin, cos := math.Sincos(float64(float32(position) * frequency))
		a, b := x[p], x[p+half]
		x[p], x[p+half] = a*cos-b*sin, b*cos+a*sin
	}
}
