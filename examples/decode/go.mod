module github.com/ingot-metal/ingot/examples/decode

go 1.25.0

require (
	github.com/ingot-metal/ingot v0.0.0
	google.golang.org/protobuf v1.36.12
)

require github.com/ebitengine/purego v0.11.3 // indirect

replace github.com/ingot-metal/ingot => ../..
