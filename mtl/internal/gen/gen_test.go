package gen

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
)

func load(t testing.TB) *Spec {
	t.Helper()
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSpecIsApples compares the description with the tables of Apple's SDK: no selector, type or version of our own.
func TestSpecIsApples(t *testing.T) {
	text, err := os.ReadFile(testenv.Shared(t, "reference/metal_api.json"))
	if err != nil {
		t.Fatal(err)
	}
	type typed struct{ Type, Enc string }
	type method struct {
		Sel        string
		Kind       string
		Ret        typed
		Own        string
		Args       []typed
		Required   *bool
		Introduced string
		Effective  string `json:"introduced_effective"`
		Deprecated string
	}
	type class struct {
		Kind    string
		Methods []method
	}
	var api struct {
		Classes, Protocols map[string]class
		Structs            map[string]struct{ Enc string }
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, c := range load(t).Classes {
		ref, ok := api.Protocols[c.Name]
		if !ok {
			ref, ok = api.Classes[c.Name]
		}
		if !ok || ref.Kind != c.Kind {
			t.Errorf("Apple has no %s %s", c.Kind, c.Name)
			continue
		}
		for _, m := range c.Methods {
			kind := "-"
			if m.Class {
				kind = "+"
			}
			found := false
			for _, r := range ref.Methods {
				if r.Sel != m.Sel || r.Kind != kind {
					continue
				}
				found = true
				enc := r.Ret.Enc + "@:"
				for i, a := range r.Args {
					enc += a.Enc
					if i < len(m.Args) && m.Args[i].Type != a.Type {
						t.Errorf("%s %s: argument %d is %s, want %s", c.Name, m.Sel, i, m.Args[i].Type, a.Type)
					}
				}
				if m.Enc != enc || m.Ret != r.Ret.Type || len(m.Args) != len(r.Args) {
					t.Errorf("%s %s: %s %s, want %s %s", c.Name, m.Sel, m.Enc, m.Ret, enc, r.Ret.Type)
				}
				since := r.Introduced
				if r.Effective != "" {
					since = r.Effective
				}
				if m.Since != since || m.Deprecated != r.Deprecated || m.Own != strings.HasPrefix(r.Own, "retained") || m.Optional != (r.Required != nil && !*r.Required) {
					t.Errorf("%s %s: version, ownership or option: %+v, want %+v", c.Name, m.Sel, m, r)
				}
				compared++
			}
			if !found {
				t.Errorf("Apple has no %s[%s %s]", kind, c.Name, m.Sel)
			}
		}
	}
	for _, st := range load(t).Structs {
		ref, ok := api.Structs[st.Name]
		if !ok {
			ref, ok = api.Structs["_"+st.Name]
		}
		if !ok || ref.Enc != st.Enc {
			t.Errorf("structure %s is %s, want %s", st.Name, st.Enc, ref.Enc)
		}
	}
	if compared < 450 {
		t.Errorf("only %d methods compared", compared)
	}
}

// TestWanted names what the rest of the project relies on.
func TestWanted(t *testing.T) {
	s := load(t)
	for class, sels := range map[string]string{
		"MTLDevice":                 "name registryID supportsFamily: hasUnifiedMemory recommendedMaxWorkingSetSize currentAllocatedSize maxBufferLength maxThreadsPerThreadgroup maxThreadgroupMemoryLength newCommandQueue newCommandQueueWithMaxCommandBufferCount: newBufferWithLength:options: newBufferWithBytes:length:options: newBufferWithBytesNoCopy:length:options:deallocator: newLibraryWithData:error: newLibraryWithSource:options:error: newDefaultLibrary newComputePipelineStateWithFunction:error: newComputePipelineStateWithFunction:options:reflection:error: newComputePipelineStateWithDescriptor:options:reflection:error: newIndirectCommandBufferWithDescriptor:maxCommandCount:options: newFence newEvent newSharedEvent newHeapWithDescriptor: newResidencySetWithDescriptor:error: counterSets",
		"MTLCommandQueue":           "commandBuffer commandBufferWithUnretainedReferences commandBufferWithDescriptor:",
		"MTLCommandBuffer":          "computeCommandEncoder computeCommandEncoderWithDispatchType: computeCommandEncoderWithDescriptor: blitCommandEncoder commit status error GPUStartTime GPUEndTime kernelStartTime kernelEndTime addCompletedHandler: addScheduledHandler: waitUntilCompleted encodeSignalEvent:value: encodeWaitForEvent:value: pushDebugGroup: useResidencySet:",
		"MTLComputeCommandEncoder":  "setComputePipelineState: setBuffer:offset:atIndex: setBufferOffset:atIndex: setBuffers:offsets:withRange: setBytes:length:atIndex: setThreadgroupMemoryLength:atIndex: dispatchThreadgroups:threadsPerThreadgroup: dispatchThreads:threadsPerThreadgroup: dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup: memoryBarrierWithScope: memoryBarrierWithResources:count: useResource:usage: useResources:count:usage: useHeap: useHeaps:count: executeCommandsInBuffer:withRange: executeCommandsInBuffer:indirectBuffer:indirectBufferOffset: updateFence: waitForFence: dispatchType",
		"MTLBlitCommandEncoder":     "fillBuffer:range:value: copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size: synchronizeResource: resetCommandsInBuffer:withRange: copyIndirectCommandBuffer:sourceRange:destination:destinationIndex: optimizeIndirectCommandBuffer:withRange:",
		"MTLIndirectComputeCommand": "setComputePipelineState: setKernelBuffer:offset:atIndex: setThreadgroupMemoryLength:atIndex: concurrentDispatchThreadgroups:threadsPerThreadgroup: concurrentDispatchThreads:threadsPerThreadgroup: setBarrier clearBarrier reset",
		"MTLSharedEvent":            "signaledValue setSignaledValue: waitUntilSignaledValue:timeoutMS:",
		"MTLCompileOptions":         "setLanguageVersion: setFastMathEnabled: setMathMode:",
		"MTLComputePipelineState":   "maxTotalThreadsPerThreadgroup threadExecutionWidth staticThreadgroupMemoryLength label supportIndirectCommandBuffers",
	} {
		c := s.class(class)
		if c == nil {
			t.Errorf("no %s", class)
			continue
		}
		for sel := range strings.FieldsSeq(sels) {
			found := false
			for _, m := range c.Methods {
				found = found || m.Sel == sel
			}
			if !found {
				t.Errorf("no -[%s %s]", class, sel)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, why := range map[string]string{
		`{`:              "unexpected EOF",
		`{"nonsense":1}`: "unknown field",
		`{"classes":[{"name":"MTLA"},{"name":"MTLA"}]}`:                                          "a name twice",
		`{"classes":[{"name":"MTL1"}]}`:                                                          "none for Go",
		`{"classes":[{"name":"MTLA","parent":"MTLB"}]}`:                                          "no parent",
		`{"classes":[{"name":"MTLA","parent":"MTLA"}]}`:                                          "circle",
		`{"classes":[{"name":"MTLA","parent":"MTLB"},{"name":"MTLB","parent":"MTLA"}]}`:          "circle",
		`{"classes":[{"name":"MTLA","methods":[{"sel":"a:"}]}]}`:                                 "0 arguments",
		`{"classes":[{"name":"MTLA","methods":[{"sel":""}]}]}`:                                   "no Go name",
		`{"classes":[{"name":"MTLA","methods":[{"sel":"a-b"}]}]}`:                                "no Go name",
		`{"classes":[{"name":"MTLA","methods":[{"sel":"a"},{"sel":"a"}]}]}`:                      "are both A",
		`{"classes":[{"name":"MTLA","methods":[{"sel":"a:","args":[{"name":"x","count":3}]}]}]}`: "is counted by",
		`{"classes":[{"name":"MTLA","methods":[{"sel":"a:","args":[{"name":"x y"}]}]}]}`:         "argument name",
		`{"structs":[{"name":"MTLS","fields":[{"name":"_"}]}]}`:                                  "field name",
		`{"structs":[{"name":"MTLS","fields":[{"name":"a","type":"MTLS"}]}]}`:                    "must stand before",
		`{"structs":[{"name":"1"}]}`:                                                             "no Go name",
		`{"enums":[{"name":"MTLE","enc":"x"}]}`:                                                  "enumeration",
		`{"enums":[{"name":"MTLE","enc":"Q","consts":[{"name":"a b","value":1}]}]}`:              "constant",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want something about %q", text, err, why)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	for text, why := range map[string]string{
		`{"sel":"a","ret":"what"}`: `"what" is not known`,
		`{"sel":"a:","ret":"void","args":[{"name":"x","type":"const NSUInteger *"}]}`:                       "by hand",
		`{"sel":"a:","ret":"void","args":[{"name":"x","type":"id<MTLA> const *"}]}`:                         "nothing counts",
		`{"sel":"a:b:","ret":"BOOL","args":[{"name":"x","type":"NSError * *"},{"name":"y","type":"BOOL"}]}`: "must be the last",
		`{"sel":"a:","ret":"void","args":[{"name":"x","type":"NSError * *"}]}`:                              "an error with a result",
		`{"sel":"a:","ret":"BOOL","args":[{"name":"x","type":"b","block":["void"]}]}`:                       "a block with",
		`{"sel":"a:","ret":"BOOL","args":[{"name":"x","type":"b","block":["NSUInteger"]}]}`:                 "a block with a result",
	} {
		s, err := Parse([]byte(`{"floor":"14.0","classes":[{"name":"MTLA","kind":"protocol","methods":[` + text + `]}]}`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := Generate(s); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want something about %q", text, err, why)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"15.0", "14.0", true}, {"14.0", "14.0", false}, {"10.15", "10.9", true}, {"13.3", "14.0", false}, {"26.4", "26.0", true}, {"", "14.0", false}} {
		if newer(c.a, c.b) != c.want {
			t.Errorf("%s newer than %s is not %t", c.a, c.b, c.want)
		}
	}
	s := load(t)
	checked := map[string]bool{}
	for i := range s.Classes {
		for j := range s.Classes[i].Methods {
			checked[s.Classes[i].Name+" "+s.Classes[i].Methods[j].Sel] = s.Checked(&s.Classes[i], &s.Classes[i].Methods[j])
		}
	}
	for name, want := range map[string]bool{
		"MTLDevice newResidencySetWithDescriptor:error:": true, "MTLDevice name": false, "MTLResidencySet commit": false, "MTLCommandBuffer useResidencySet:": true,
	} {
		if checked[name] != want {
			t.Errorf("%s checked is %t", name, !want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(specText[:2000])
	f.Add([]byte(`{"floor":"14.0","classes":[{"name":"MTLA","kind":"class","new":true,"props":[{"get":"a","set":"setA:"}],"methods":[{"sel":"setA:","enc":"v@:Q","ret":"void","args":[{"name":"a","type":"NSUInteger"}]}]}]}`))
	f.Add([]byte(`{"structs":[{"name":"MTLS","fields":[{"name":"_a","type":"NSUInteger"}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		files, err := Generate(s)
		if err != nil {
			return
		}
		for name, code := range files {
			if !bytes.HasPrefix(code, []byte("// Code generated")) {
				t.Errorf("%s is not marked as generated", name)
			}
		}
	})
}

func BenchmarkGenerate(b *testing.B) {
	s := load(b)
	for b.Loop() {
		if _, err := Generate(s); err != nil {
			b.Fatal(err)
		}
	}
}

func TestGoName(t *testing.T) {
	for _, c := range []struct {
		m    Method
		want string
	}{
		{Method{Sel: "label"}, "Label"},
		{Method{Sel: "setBuffer:offset:atIndex:"}, "SetBuffer"},
		{Method{Sel: "GPUStartTime"}, "GPUStartTime"},
		{Method{Sel: "gpuAddress", Go: "GPUAddress"}, "GPUAddress"},
		{Method{}, ""},
	} {
		if got := c.m.GoName(); got != c.want {
			t.Errorf("%s: %q, want %q", c.m.Sel, got, c.want)
		}
	}
}
