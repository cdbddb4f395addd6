package checkpoint

import "fmt"

// Role is what a tensor is in the model.
type Role int

// The roles of tensors. Those from InputNorm on exist once per layer.
const (
	Embedding Role = iota // [Vocab, Hidden]
	Output                // [Vocab, Hidden], unless Config.Tied: the embedding then
	FinalNorm             // [Hidden]

	InputNorm         // [Hidden], before attention
	PostAttentionNorm // [Hidden], with Config.PostNorms
	PreFFNNorm        // [Hidden]
	PostFFNNorm       // [Hidden], with Config.PostNorms
	QueryNorm         // [HeadDim], with Config.QKNorm
	KeyNorm           // [HeadDim], with Config.QKNorm

	Query           // [Heads * HeadDim, Hidden]
	Key             // [KVHeads * HeadDim, Hidden]
	Value           // [KVHeads * HeadDim, Hidden]
	AttentionOutput // [Hidden, Heads * HeadDim]
	Gate            // [FFN, Hidden]
	Up              // [FFN, Hidden]
	Down            // [Hidden, FFN]

	QueryBias           // [Heads * HeadDim], with Config.AttentionBias
	KeyBias             // [KVHeads * HeadDim], with Config.AttentionBias
	ValueBias           // [KVHeads * HeadDim], with Config.AttentionBias
	AttentionOutputBias // [Hidden], where Checkpoint.Has says so

	roles // how many there are
)

var roleNames = [roles]string{
	"embedding", "output", "final norm", "input norm", "norm after attention", "norm before FFN", "norm after FFN", "query norm", "key norm",
	"query", "key", "value", "attention output", "gate", "up", "down", "query bias", "key bias", "value bias", "attention output bias",
}

// String is the role in words.
func (r Role) String() string {
	if r < 0 || r >= roles {
		return fmt.Sprintf("Role(%d)", int(r))
	}
	return roleNames[r]
}

// inLayer says whether each layer has a tensor of the role.
func (r Role) inLayer() bool { return r >= InputNorm }

// shape is that of a tensor of the role: cols is 0 for a vector.
func (c *Config) shape(r Role) (rows, cols int) {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	switch r {
	case Embedding, Output:
		return c.Vocab, c.Hidden
	case QueryNorm, KeyNorm:
		return c.HeadDim, 0
	case Query:
		return q, c.Hidden
	case Key, Value:
		return kv, c.Hidden
	case AttentionOutput:
		return c.Hidden, q
	case Gate, Up:
		return c.FFN, c.Hidden
	case Down:
		return c.Hidden, c.FFN
	case QueryBias:
		return q, 0
	case KeyBias, ValueBias:
		return kv, 0
	}
	return c.Hidden, 0 // the other norms, the bias of the attention's output
}

// has says whether a model of this configuration has tensors of the role.
func (c *Config) has(r Role) bool {
	switch r {
	case Output:
		return !c.Tied
	case PostAttentionNorm, PostFFNNorm:
		return c.PostNorms
	case QueryNorm, KeyNorm:
		return c.QKNorm
	case QueryBias, KeyBias, ValueBias:
		return c.AttentionBias
	case AttentionOutputBias:
		return c.outputBias
	}
	return true
}
