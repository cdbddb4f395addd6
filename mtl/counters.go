package mtl

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/ingot-metal/ingot/objc"
)

const (
	// CommonCounterSetTimestamp is the name of the counter set that holds one counter, the GPU's clock
	// (MTLCommonCounterSetTimestamp, macOS 10.15).
	CommonCounterSetTimestamp = "timestamp"
	// CounterErrorValue is what a sample resolves to that could not be taken (MTLCounterErrorValue, macOS 10.15).
	CounterErrorValue = ^uint64(0)
	// CounterDontSample in place of an index takes no sample (MTLCounterDontSample, macOS 11.0).
	CounterDontSample = ^uint(0)
)

// TimestampCounterSet is the device's counter set of timestamps, nil if it has none. It is borrowed: the device holds it.
func TimestampCounterSet(d Device) CounterSet {
	sets := d.CounterSets()
	for i := range sets.Len() {
		if set := CounterSetOf(sets.At(i).ID()); strings.EqualFold(set.Name(), CommonCounterSetTimestamp) {
			return set
		}
	}
	return CounterSet{}
}

// ResolveTimestamps resolves samples of a buffer of timestamps (-[MTLCounterSampleBuffer resolveCounterRange:], macOS 10.15),
// n from first on. The work that takes them must have completed. A sample that could not be taken is [CounterErrorValue].
func ResolveTimestamps(b CounterSampleBuffer, first, n uint) ([]uint64, error) {
	defer objc.NewPool().Drain()
	data := objc.GoBytes(b.ResolveCounterRange(Range{Location: first, Length: n}).ID())
	if uint(len(data)) != 8*n {
		return nil, fmt.Errorf("mtl: %d timestamps resolved to %d bytes", n, len(data))
	}
	stamps := make([]uint64, n)
	for i := range stamps {
		stamps[i] = binary.NativeEndian.Uint64(data[8*i:])
	}
	return stamps, nil
}

// SetCaptureOutput is -[MTLCaptureDescriptor setOutputURL:] (macOS 10.15) with the URL of a file.
func SetCaptureOutput(d CaptureDescriptor, path string) error {
	url, err := objc.FileURL(d.id, path)
	if err != nil {
		return err
	}
	defer url.Release()
	d.SetOutputURL(ObjectOf(url))
	return nil
}

// CaptureManagerFor is the manager that captures what is sent to a device (+[MTLCaptureManager sharedCaptureManager],
// macOS 10.13); nil if there is none, as for devices that are no hardware. It is borrowed.
func CaptureManagerFor(d Device) CaptureManager {
	class := objc.ClassFor(d.id, "MTLCaptureManager")
	return CaptureManagerOf(objc.ID(msgSharedCaptureManager.Send(class.ID())))
}
