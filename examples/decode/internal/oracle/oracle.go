// Package oracle is language models in float64, from their definitions, with no thought of speed: what the kernels of a decode
// step are measured by. It covers what a configuration can ask for: Gemma 3 and the family of Llama.
package oracle

import (
	"math"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
)

// Model is a model's weights.
type Model struct {
	config        *checkpoint.Config
	embed, output dense
	norm          []float64
	layers        []layer
}

// layer is a layer's weights. Vectors that a model does not have are nil.
type layer struct {
	inputNorm, postAttentionNorm, preFFNNorm, postFFNNorm, queryNorm, keyNorm []float64
	queryBias, keyBias, valueBias, outputBias                                 []float64
	q, k, v, o, gate, up, down                                                dense
	rotary                                                                    rotary
}

// Text is a text in progress: the keys and values of all positions so far.
type Text struct {
	m            *Model
	keys, values [][][]float64 // [layer][position][KVHeads·HeadDim]
}

// Start begins a text.
func (m *Model) Start() *Text {
	return &Text{m: m, keys: make([][][]float64, len(m.layers)), values: make([][][]float64, len(m.layers))}
}

// Step feeds one token. It returns the logits of the next one, and the residual stream: the embedding, after every layer
// but the last, and after the final norm.
func (t *Text) Step(id uint32) (logits []float64, hidden [][]float64) {
	m, c := t.m, t.m.config
	position := len(t.keys[0])
	x := make([]float64, c.Hidden)
	for i, w := range m.embed.row(int(id)) {
		x[i] = w * c.EmbedScale
	}
	hidden = append(hidden, append([]float64{}, x...))
	for i := range m.layers {
		l := &m.layers[i]
		add(x, m.normed(t.attention(i, position, m.normed(x, l.inputNorm)), l.postAttentionNorm))
		add(x, m.normed(m.feedForward(l, m.normed(x, l.preFFNNorm)), l.postFFNNorm))
		if i+1 < len(m.layers) {
			hidden = append(hidden, append([]float64{}, x...))
		}
	}
	x = m.normed(x, m.norm)
	return m.capped(m.output.times(x), c.Softcap), append(hidden, x)
}

// capped is cap·tanh(v/cap), if there is a cap.
func (m *Model) capped(v []float64, limit float64) []float64 {
	if limit > 0 {
		for i := range v {
			v[i] = limit * math.Tanh(v[i]/limit)
		}
	}
	return v
}

func (m *Model) feedForward(l *layer, x []float64) []float64 {
	mid, up := l.gate.times(x), l.up.times(x)
	for j, g := range mid {
		switch m.config.Activation {
		case checkpoint.GELUTanh:
			mid[j] = 0.5 * g * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g))) * up[j]
		case checkpoint.SiLU:
			mid[j] = g / (1 + math.Exp(-g)) * up[j]
		}
	}
	return l.down.times(mid)
}

// normed is RMSNorm of one vector: x/sqrt(mean(x²)+eps)·weight. Without a weight there is no norm.
func (m *Model) normed(x, weight []float64) []float64 {
	if weight == nil {
		return x
	}
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+m.config.Eps)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * scale * weight[i]
	}
	return out
}

func (t *Text) attention(i, position int, x []float64) []float64 {
	m, l := t.m, &t.m.layers[i]
	c, d := m.config, m.config.HeadDim
	q, k, v := l.q.times(x), l.k.times(x), l.v.times(x)
	add(q, l.queryBias)
	add(k, l.keyBias)
	add(v, l.valueBias)
	for h := range c.Heads {
		m.head(q[h*d:(h+1)*d], l.queryNorm, l.rotary, position)
	}
	for h := range c.KVHeads {
		m.head(k[h*d:(h+1)*d], l.keyNorm, l.rotary, position)
	}
	t.keys[i] = append(t.keys[i], k)
	t.values[i] = append(t.values[i], v)

	first := 0
	if c.Sliding != nil && c.Sliding[i] {
		first = max(0, position-c.Window+1)
	}
	out := make([]float64, c.Heads*d)
	for h := range c.Heads {
		kv := h / (c.Heads / c.KVHeads) * d
		m.attend(out[h*d:(h+1)*d], q[h*d:(h+1)*d], t.keys[i][first:], t.values[i][first:], kv)
	}
	y := l.o.times(out)
	add(y, l.outputBias)
	return y
}

// attend is the attention of one query head to the keys and values of its head, which begin at element kv.
func (m *Model) attend(out, q []float64, keys, values [][]float64, kv int) {
	scores := make([]float64, len(keys))
	for j, key := range keys {
		for i := range q {
			scores[j] += q[i] * key[kv+i]
		}
		scores[j] *= m.config.QueryScale
	}
	m.capped(scores, m.config.AttnSoftcap)
	highest := math.Inf(-1)
	for _, s := range scores {
		highest = max(highest, s)
	}
	total := 0.0
	for j, s := range scores {
		p := math.Exp(s - highest)
		total += p
		for i := range out {
			out[i] += p * values[j][kv+i]
		}
	}
	for i := range out {
		out[i] /= total
	}
}

// head normalises a query or key head and turns it.
func (m *Model) head(x, weight []float64, r rotary, position int) {
	copy(x, m.normed(x, weight))
	r.turn(x, position)
}

// add adds y to x; a nil y is nothing.
func add(x, y []float64) {
	for i := range y {
		x[i] += y[i]
	}
}
