package objc

import "testing"

func TestSmoke(t *testing.T) {
	m := NewMessage("a:b:", "{S=QQQ}@:{S=QQQ}Q")
	c := NewGoClass("X", map[string]Method{"a:b:": func(c *Call) { c.Return(c.Word(3), c.Word(1), c.Word(2)) }})
	before := LiveObjects()
	id := c.New(nil)
	if r := m.Send3(id, 1, 2, 3, 4); r != [3]uintptr{4, 2, 3} {
		t.Fatal(r)
	}
	if n := testing.AllocsPerRun(1000, func() { m.Send3(id, 1, 2, 3, 4) }); n != 0 {
		t.Fatal(n)
	}
	s := NSString("hé")
	if GoString(s) != "hé" {
		t.Fatal(GoString(s))
	}
	s.Release()
	id.Release()
	if LiveObjects() != before {
		t.Fatal("leak")
	}
	t.Log(TakeError())
}

func BenchmarkSend(b *testing.B) {
	m := NewMessage("x:y:z:", "v@:@QQ")
	c := NewGoClass("X", map[string]Method{"x:y:z:": func(c *Call) { c.Return(c.Word(1)) }})
	id := c.New(nil)
	b.ReportAllocs()
	for b.Loop() {
		m.Send(id, 0, 1, 2)
	}
}
