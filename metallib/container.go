// Package metallib reads and writes Metal libraries, the container (.metallib) that holds one LLVM module per function.
//
// [Read] takes what Apple's two writers have made since 2016, and [Write] gives the same bytes back. Libraries made from
// scratch are written in the form of macOS 14: container 1.2.7, AIR 2.6, Metal 3.1. [Inspect] prints what a library
// holds. The modules are read with package air, see [Function.Module].
package metallib

import (
	"fmt"

	"github.com/ingot-metal/ingot/metallib/air"
)

// A Version is a version of a format, a language or a system; Patch is 0 where there is none.
type Version struct{ Major, Minor, Patch uint16 }

// String prints the version with as many parts as it needs.
func (v Version) String() string {
	if v.Patch == 0 {
		return fmt.Sprintf("%d.%d", v.Major, v.Minor)
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// A FileType says what kind of library a file is.
type FileType uint8

// The file types.
const (
	Executable      FileType = 0
	CoreImage       FileType = 1
	DynamicLibrary  FileType = 2
	SymbolCompanion FileType = 3
)

var fileTypeNames = [...]string{"executable", "Core Image", "dynamic library", "symbol companion"}

// String names the type.
func (t FileType) String() string {
	if int(t) < len(fileTypeNames) {
		return fileTypeNames[t]
	}
	return fmt.Sprintf("file type %d", uint8(t))
}

// A Platform is the system a library is for, numbered as in Mach-O. Containers before 1.2.6 do not say it.
type Platform uint8

// The platforms.
const (
	UnknownPlatform  Platform = 0
	MacOS            Platform = 1
	IOS              Platform = 2
	TVOS             Platform = 3
	WatchOS          Platform = 4
	BridgeOS         Platform = 5
	MacCatalyst      Platform = 6
	IOSSimulator     Platform = 7
	TVOSSimulator    Platform = 8
	WatchOSSimulator Platform = 9
	VisionOS         Platform = 11
)

var platformNames = map[Platform]string{UnknownPlatform: "unknown", MacOS: "macOS", IOS: "iOS", TVOS: "tvOS", WatchOS: "watchOS",
	BridgeOS: "bridgeOS", MacCatalyst: "Mac Catalyst", IOSSimulator: "iOS simulator", TVOSSimulator: "tvOS simulator",
	WatchOSSimulator: "watchOS simulator", VisionOS: "visionOS"}

// String names the platform.
func (p Platform) String() string {
	if s, ok := platformNames[p]; ok {
		return s
	}
	return fmt.Sprintf("platform %d", uint8(p))
}

// A Library is a Metal library. Of one made from scratch only Functions must be set; the zero values of the rest stand for
// macOS 14.
type Library struct {
	// Container is the version of the container: 1.2.2 to 1.2.9.
	Container Version
	// ForMac is the header's mark of libraries for macOS.
	ForMac bool
	Type   FileType
	// Stub marks a library of declarations only.
	Stub     bool
	Platform Platform
	// OS is the least version of the system, zero before container 1.2.6.
	OS        Version
	Functions []Function
	// Extension holds the entries of the header extension, sections at the end of the file among them. A library made
	// from scratch gets a UUID derived from its content.
	Extension []Entry

	// fromFile is set by Read: what is zero then is zero in the file.
	fromFile bool
	// bare is set when the file has no header extension at all, not even its end mark.
	bare bool
	// platformBits are the platform byte's upper bits.
	platformBits uint8
}

// Function finds a function by name, nil if there is none.
func (l *Library) Function(name string) *Function {
	if l == nil {
		return nil
	}
	for i := range l.Functions {
		if l.Functions[i].Name == name {
			return &l.Functions[i]
		}
	}
	return nil
}

// An Entry is one entry of the header extension. Its data are the entry's own, or those of the section at the end of the
// file that it points to.
type Entry struct {
	Tag     string // four characters, such as "UUID"; empty for bytes at the end of the file that no entry points to
	Section bool
	Data    []byte

	at uint64 // the section's place in the file it was read from
}

// sectionTags are the entries of the header extension that point to a section.
var sectionTags = map[string]bool{"HDYN": true, "VLST": true, "ILST": true, "HSRC": true, "HSRD": true, "RLST": true, "SLST": true}

// A FunctionType says what kind of function an entry is.
type FunctionType uint8

// The function types.
const (
	Vertex       FunctionType = 0
	Fragment     FunctionType = 1
	Kernel       FunctionType = 2
	Unqualified  FunctionType = 3
	Visible      FunctionType = 4
	Extern       FunctionType = 5
	Intersection FunctionType = 6
	Mesh         FunctionType = 7
	Object       FunctionType = 8
	NoType       FunctionType = 255
)

var functionTypeNames = map[FunctionType]string{Vertex: "vertex", Fragment: "fragment", Kernel: "kernel", Unqualified: "unqualified",
	Visible: "visible", Extern: "extern", Intersection: "intersection", Mesh: "mesh", Object: "object", NoType: "none"}

// String names the type.
func (t FunctionType) String() string {
	if s, ok := functionTypeNames[t]; ok {
		return s
	}
	return fmt.Sprintf("function type %d", uint8(t))
}

// A Function is one function of a library.
type Function struct {
	Name string
	Type FunctionType
	// Hash is the SHA-256 of Bitcode. Write computes it; of AIR 1.8 it is kept, being of unknown origin.
	Hash [32]byte
	// Bitcode is the function's module in its wrapper, padded to 16 bytes, as air.Write gives it.
	Bitcode []byte
	// AIR and Metal are the versions of the representation and of the language; zero stands for 2.6 and 3.1 in libraries
	// made from scratch.
	AIR, Metal Version
	// Constants are the function constants that the function declares.
	Constants []Constant
	// Public, Private and Extra are further tags of the function's metadata and of its entry in the function list.
	Public, Private, Extra []Tag

	place *place
}

// Module reads the function's module.
func (f *Function) Module() (*air.Module, error) {
	m, err := air.Read(f.Bitcode)
	if err != nil {
		return nil, fmt.Errorf("metallib: function %s: %w", f.Name, err)
	}
	return m, nil
}

// A place remembers how a function was laid out in the file it was read from, so that Write can do the same.
type place struct {
	order                   []string // of the tags in the function list
	publicOrder             []string // of the tags in the public metadata
	public, private, code   uint64   // offsets in the sections
	publicExcl, privateExcl bool     // the group's size leaves out the size itself
}

// A Tag is four characters with data.
type Tag struct {
	Name string
	Data []byte
}

// A DataType is the type of a function constant, numbered as Metal's MTLDataType.
type DataType uint8

// The scalar data types.
const (
	Float  DataType = 3
	Half   DataType = 16
	Int    DataType = 29
	UInt   DataType = 33
	Short  DataType = 37
	UShort DataType = 41
	Char   DataType = 45
	UChar  DataType = 49
	Bool   DataType = 53
	Long   DataType = 81
	ULong  DataType = 85
	BFloat DataType = 121
)

var dataTypeNames = map[DataType]string{Float: "float", Half: "half", Int: "int", UInt: "uint", Short: "short", UShort: "ushort",
	Char: "char", UChar: "uchar", Bool: "bool", Long: "long", ULong: "ulong", BFloat: "bfloat"}

// String names scalar types, and vectors of them ("float3").
func (t DataType) String() string {
	if s, ok := dataTypeNames[t]; ok {
		return s
	}
	for n := DataType(2); n <= 4; n++ {
		if s, ok := dataTypeNames[t-n+1]; ok {
			return fmt.Sprintf("%s%d", s, n)
		}
	}
	return fmt.Sprintf("data type %d", uint8(t))
}

// ParseDataType finds a data type by its Metal name, such as "uint" or "float4".
func ParseDataType(name string) (DataType, error) {
	for t, s := range dataTypeNames {
		if s == name {
			return t, nil
		}
		for n := DataType(2); n <= 4; n++ {
			if fmt.Sprintf("%s%d", s, n) == name {
				return t + n - 1, nil
			}
		}
	}
	return 0, fmt.Errorf("metallib: no function constant can be of type %q", name)
}

// A Constant is one function constant of a function.
type Constant struct {
	Name  string
	Type  DataType
	Index uint16
	// Active is set when the function uses the constant.
	Active bool
}
