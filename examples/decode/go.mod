module github.com/ingot-metal/ingot/examples/decode

go 1.25.0

require google.golang.org/protobuf v1.36.12

replace github.com/ingot-metal/ingot => ../..
