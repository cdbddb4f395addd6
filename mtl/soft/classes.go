package soft

import (
	"sync"

	"github.com/ingot-metal/ingot/objc"
)

// classes are the classes of a device's objects.
type classes struct {
	device, queue, commandBuffer, computeEncoder, blitEncoder         *objc.GoClass
	buffer, heap, indirect, indirectCommand, residencySet             *objc.GoClass
	library, function, functionConstant                               *objc.GoClass
	pipeline, reflection, bufferBinding, threadgroupBinding, argument *objc.GoClass
	event, sharedEvent, fence, sampleBuffer                           *objc.GoClass
}

// A features says which selectors a device pretends not to have.
type features struct {
	noResidencySets, noEventTimeouts, noArchitecture, no15, no26 bool
}

var madeClasses sync.Map // features to *classes

// classesFor gives the classes of a device; devices with the same features share them.
func classesFor(o *Options) *classes {
	f := features{
		noResidencySets: o.NoResidencySets || o.OSVersion.less(Version{15, 0}),
		noEventTimeouts: o.NoEventTimeouts,
		noArchitecture:  o.OSVersion.less(Version{14, 0}),
		no15:            o.OSVersion.less(Version{15, 0}),
		no26:            o.OSVersion.less(Version{26, 0}),
	}
	if c, ok := madeClasses.Load(f); ok {
		return c.(*classes)
	}
	c, _ := madeClasses.LoadOrStore(f, makeClasses(f))
	return c.(*classes)
}

// newerThan lists the selectors of the device's classes that are newer than the oldest system that it pretends.
var newerThan = struct{ v14, v15, v26 []string }{
	v14: []string{"architecture"},
	v15: []string{"newCommandQueueWithDescriptor:"},
	v26: []string{"queryTimestampFrequency", "reflection", "requiredThreadsPerThreadgroup",
		"barrierAfterQueueStages:beforeStages:", "reflectionForFunctionWithName:"},
}

// residencySelectors are those that have to do with residency sets.
var residencySelectors = []string{"newResidencySetWithDescriptor:error:", "addResidencySet:", "addResidencySets:count:",
	"removeResidencySet:", "removeResidencySets:count:", "useResidencySet:", "useResidencySets:count:"}

func makeClasses(f features) *classes {
	var hidden []string
	if f.noArchitecture {
		hidden = append(hidden, newerThan.v14...)
	}
	if f.no15 {
		hidden = append(hidden, newerThan.v15...)
	}
	if f.no26 {
		hidden = append(hidden, newerThan.v26...)
	}
	if f.noResidencySets {
		hidden = append(hidden, residencySelectors...)
	}
	if f.noEventTimeouts {
		hidden = append(hidden, "waitUntilSignaledValue:timeoutMS:")
	}
	return &classes{
		device:             deviceMethods().without(hidden...).class("IngotDevice"),
		queue:              queueMethods().without(hidden...).class("IngotCommandQueue"),
		commandBuffer:      commandBufferMethods().without(hidden...).class("IngotCommandBuffer"),
		computeEncoder:     computeEncoderMethods().without(hidden...).class("IngotComputeCommandEncoder"),
		blitEncoder:        blitEncoderMethods().without(hidden...).class("IngotBlitCommandEncoder"),
		buffer:             bufferMethods().class("IngotBuffer"),
		heap:               heapMethods().class("IngotHeap"),
		indirect:           indirectMethods().class("IngotIndirectCommandBuffer"),
		indirectCommand:    commandObjectMethods().class("IngotIndirectComputeCommand"),
		residencySet:       residencySetMethods().class("IngotResidencySet"),
		library:            libraryMethods().without(hidden...).class("IngotLibrary"),
		function:           functionMethods().class("IngotFunction"),
		functionConstant:   functionConstantMethods().class("MTLFunctionConstant"),
		pipeline:           pipelineMethods().without(hidden...).class("IngotComputePipelineState"),
		reflection:         reflectionMethods().class("MTLComputePipelineReflection"),
		bufferBinding:      bufferBindingMethods().class("IngotBufferBinding"),
		threadgroupBinding: threadgroupBindingMethods().class("IngotThreadgroupBinding"),
		argument:           argumentMethods().class("MTLArgument"),
		event:              eventMethods().class("IngotEvent"),
		sharedEvent:        sharedEventMethods().without(hidden...).class("IngotSharedEvent"),
		fence:              fenceMethods().class("IngotFence"),
		sampleBuffer:       sampleBufferMethods().class("IngotCounterSampleBuffer"),
	}
}
