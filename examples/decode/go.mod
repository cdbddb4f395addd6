module github.com/ingot-metal/ingot/examples/decode

go 1.25.0

require (
	github.com/ingot-metal/ingot v0.0.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/text v0.36.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/ebitengine/purego v0.11.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/ingot-metal/ingot => ../..
