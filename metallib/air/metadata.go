package air

// Metadata is a node of the metadata graph: [*MDString], [*MDValue], [*MDNode] or [*MDOther].
type Metadata interface{ metadata() }

// An MDString is a string.
type MDString struct{ S string }

// An MDValue is a constant (or, in a function, any value) used as metadata.
type MDValue struct{ V Value }

// An MDNode is a tuple; nil operands are allowed. A distinct node is never merged with an equal one.
type MDNode struct {
	Distinct bool
	Ops      []Metadata
}

// An MDOther is a specialised node (debug information and so on), kept as its record.
type MDOther struct {
	Code   uint64
	Record []uint64
}

func (*MDString) metadata() {}
func (*MDValue) metadata()  {}
func (*MDNode) metadata()   {}
func (*MDOther) metadata()  {}

// An Attachment is metadata attached to an instruction, function or global under a kind such as "tbaa".
type Attachment struct {
	Kind string
	Node Metadata
}

// NamedMD is a named list of nodes of a module, such as "air.kernel".
type NamedMD struct {
	Name string
	Ops  []Metadata
}
