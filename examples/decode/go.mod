module github.com/ingot-metal/ingot/examples/decode

go 1.25.0

require (
	github.com/ingot-metal/ingot v0.0.0
	google.golang.org/protobuf v1.36.12
)

replace github.com/ingot-metal/ingot => ../..
