package air

// A Module is one LLVM module.
type Module struct {
	// Types makes and holds the module's types.
	Types
	SourceName string
	Triple     string
	DataLayout string
	Asm        string
	// Ident is the producer string of the identification block, such as "LLVM14.0.6".
	Ident     string
	Globals   []*Global
	Functions []*Function
	Aliases   []*Alias
	Comdats   []*Comdat
	NamedMD   []*NamedMD
	// SyncScopes names the synchronisation scopes that Instr.SyncScope numbers; empty means LLVM's own two,
	// "singlethread" and "" (the system).
	SyncScopes []string
	// Skipped names the blocks and records that were read over because they have no meaning here, each once.
	Skipped []string
}

// Function finds a function by name, nil if there is none.
func (m *Module) Function(name string) *Function {
	for _, f := range m.Functions {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Global finds a global by name, nil if there is none.
func (m *Module) Global(name string) *Global {
	for _, g := range m.Globals {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Named finds named metadata, nil if there is none.
func (m *Module) Named(name string) *NamedMD {
	for _, n := range m.NamedMD {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// NewBlock appends an empty block to f.
func (m *Module) NewBlock(f *Function, name string) *Block {
	b := &Block{Name: name, Parent: f, label: m.Label()}
	f.Blocks = append(f.Blocks, b)
	return b
}

// ConstInt makes an integer constant of type t (up to 64 bits); the bits above t's width are cleared.
func ConstInt(t *Type, v uint64) *Const {
	if t.Bits < 64 {
		v &= 1<<t.Bits - 1
	}
	return &Const{Kind: IntConst, Ty: t, Bits: v}
}
