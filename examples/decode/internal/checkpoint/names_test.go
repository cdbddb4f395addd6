package checkpoint

import "testing"

// The names of tensors, as published files have them: of layer 7, and of what belongs to no layer. What is swapped in a table of names
// may have the same shape, so that nothing else notices.
func TestNames(t *testing.T) {
	const layer = "model.layers.7."
	names := []struct {
		role                Role
		folder, gemma, gguf string // gemma is empty where it has no other name
	}{
		{Embedding, "model.embed_tokens.weight", "", "token_embd.weight"},
		{Output, "lm_head.weight", "", "output.weight"},
		{FinalNorm, "model.norm.weight", "", "output_norm.weight"},
		{InputNorm, layer + "input_layernorm.weight", "", "blk.7.attn_norm.weight"},
		{PostAttentionNorm, "", layer + "post_attention_layernorm.weight", "blk.7.post_attention_norm.weight"},
		{PreFFNNorm, layer + "post_attention_layernorm.weight", layer + "pre_feedforward_layernorm.weight", "blk.7.ffn_norm.weight"},
		{PostFFNNorm, "", layer + "post_feedforward_layernorm.weight", "blk.7.post_ffw_norm.weight"},
		{QueryNorm, layer + "self_attn.q_norm.weight", "", "blk.7.attn_q_norm.weight"},
		{KeyNorm, layer + "self_attn.k_norm.weight", "", "blk.7.attn_k_norm.weight"},
		{Query, layer + "self_attn.q_proj.weight", "", "blk.7.attn_q.weight"},
		{Key, layer + "self_attn.k_proj.weight", "", "blk.7.attn_k.weight"},
		{Value, layer + "self_attn.v_proj.weight", "", "blk.7.attn_v.weight"},
		{AttentionOutput, layer + "self_attn.o_proj.weight", "", "blk.7.attn_output.weight"},
		{Gate, layer + "mlp.gate_proj.weight", "", "blk.7.ffn_gate.weight"},
		{Up, layer + "mlp.up_proj.weight", "", "blk.7.ffn_up.weight"},
		{Down, layer + "mlp.down_proj.weight", "", "blk.7.ffn_down.weight"},
		{QueryBias, layer + "self_attn.q_proj.bias", "", "blk.7.attn_q.bias"},
		{KeyBias, layer + "self_attn.k_proj.bias", "", "blk.7.attn_k.bias"},
		{ValueBias, layer + "self_attn.v_proj.bias", "", "blk.7.attn_v.bias"},
		{AttentionOutputBias, layer + "self_attn.o_proj.bias", "", "blk.7.attn_output.bias"},
	}
	if len(names) != int(roles) {
		t.Errorf("%d of %d roles", len(names), roles)
	}
	for model := range families {
		raw := folderConfig{ModelType: model}
		name := raw.layout().name
		for _, n := range names {
			want, key := n.folder, slotKey{n.role, -1}
			if n.role.inLayer() {
				key.layer = 7
			}
			if raw.family().gemma && n.gemma != "" {
				want = n.gemma
			}
			if want != "" && name(key) != want {
				t.Errorf("%s: the %v is called %q, want %q", model, n.role, name(key), want)
			}
			if got := ggufName(key); got != n.gguf {
				t.Errorf("GGUF: the %v is called %q, want %q", n.role, got, n.gguf)
			}
		}
	}
}
