package soft

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/objc"
)

// spec is what the bindings are generated from.
type spec struct {
	Classes []struct {
		Name, Kind, Parent string
		Methods            []struct {
			Sel   string
			Class bool
		}
	}
}

func readSpec(t *testing.T) *spec {
	data, err := os.ReadFile("../internal/gen/metal.json")
	require.NoError(t, err)
	s := &spec{}
	require.NoError(t, json.Unmarshal(data, s))
	return s
}

// selectors are those of a protocol or class and of what it extends.
func (s *spec) selectors(t *testing.T, name string) map[string]bool {
	all := map[string]bool{}
	for name != "" {
		found := false
		for _, c := range s.Classes {
			if c.Name == name {
				found = true
				name = c.Parent
				for _, m := range c.Methods {
					if !m.Class {
						all[m.Sel] = true
					}
				}
				break
			}
		}
		require.True(t, found, "%s is not in metal.json", name)
	}
	return all
}

// beyond are selectors of Metal that the device answers although the bindings do not send them.
var beyond = map[string][]string{
	"MTLBuffer":                 {"remoteStorageBuffer", "sparseBufferTier"},
	"MTLFunction":               {"patchType", "patchControlPointCount", "stageInputAttributes", "vertexAttributes"},
	"MTLComputePipelineState":   {"imageblockMemoryLengthForDimensions:"},
	"MTLCommandBuffer":          {"computeCommandEncoderWithDispatchType:", "blitCommandEncoderWithDescriptor:", "logs"},
	"MTLComputeCommandEncoder":  {"dispatchType", "setImageblockWidth:height:"},
	"MTLIndirectComputeCommand": {"setImageblockWidth:height:"},
	"MTLSharedEvent":            {"notifyListener:atValue:block:"},
}

// TestBeyondIsMetals looks the selectors up that the bindings do not have in the tables of all of Metal.
func TestBeyondIsMetals(t *testing.T) {
	data, err := os.ReadFile(testenv.Shared(t, "reference/metal_api.json"))
	require.NoError(t, err)
	var api struct {
		Protocols map[string]struct {
			Methods []struct{ Sel string }
		}
	}
	require.NoError(t, json.Unmarshal(data, &api))
	for name, selectors := range beyond {
		have := map[string]bool{}
		for _, m := range api.Protocols[name].Methods {
			have[m.Sel] = true
		}
		for _, sel := range selectors {
			require.True(t, have[sel], "%s has no %s", name, sel)
		}
	}
}

// metalClasses are the classes of a device by what they stand in for.
func metalClasses(c *classes) map[string]*objc.GoClass {
	return map[string]*objc.GoClass{
		"MTLDevice": c.device, "MTLCommandQueue": c.queue, "MTLCommandBuffer": c.commandBuffer,
		"MTLComputeCommandEncoder": c.computeEncoder, "MTLBlitCommandEncoder": c.blitEncoder, "MTLBuffer": c.buffer,
		"MTLHeap": c.heap, "MTLIndirectCommandBuffer": c.indirect, "MTLIndirectComputeCommand": c.indirectCommand,
		"MTLResidencySet": c.residencySet, "MTLLibrary": c.library, "MTLFunction": c.function,
		"MTLFunctionConstant": c.functionConstant, "MTLComputePipelineState": c.pipeline,
		"MTLComputePipelineReflection": c.reflection, "MTLBufferBinding": c.bufferBinding,
		"MTLThreadgroupBinding": c.threadgroupBinding, "MTLArgument": c.argument, "MTLEvent": c.event,
		"MTLSharedEvent": c.sharedEvent, "MTLFence": c.fence, "MTLArchitecture": architectureClass,
		"MTLCommandBufferEncoderInfo": encoderInfoClass, "MTLCounterSampleBuffer": c.sampleBuffer,
		"MTLCounterSet": counterSetClass, "MTLCounter": counterClass,
	}
}

func TestEverySelectorIsMetals(t *testing.T) {
	s := readSpec(t)
	for name, class := range metalClasses(classesFor(ptr(Options{}.withDefaults()))) {
		in := s.selectors(t, name)
		for _, sel := range class.Selectors() {
			assert.True(t, in[sel] || slices.Contains(beyond[name], sel), "%s answers %s, which is not Metal's", name, sel)
		}
	}
}

func TestEverySelectorIsAnswered(t *testing.T) {
	s := readSpec(t)
	for name, class := range metalClasses(classesFor(ptr(Options{}.withDefaults()))) {
		have := class.Selectors()
		for sel := range s.selectors(t, name) {
			assert.Contains(t, have, sel, "%s does not answer %s", name, sel)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestOlderSystems takes selectors away that came later.
func TestOlderSystems(t *testing.T) {
	old := classesFor(ptr(Options{OSVersion: Version{13, 0}}.withDefaults()))
	for _, sel := range []string{"architecture", "newResidencySetWithDescriptor:error:", "newCommandQueueWithDescriptor:", "queryTimestampFrequency"} {
		require.NotContains(t, old.device.Selectors(), sel)
	}
	require.NotContains(t, old.queue.Selectors(), "addResidencySet:")
	require.Contains(t, old.device.Selectors(), "newSharedEvent")
	require.Same(t, old, classesFor(ptr(Options{OSVersion: Version{13, 0}}.withDefaults())))
}
