package msl

import "strings"

// builtins are the attributes of kernel parameters that the hardware fills, each air.NAME in the metadata.
var builtins = words(`thread_position_in_grid thread_position_in_threadgroup threadgroup_position_in_grid
	thread_index_in_threadgroup thread_index_in_simdgroup simdgroup_index_in_threadgroup threads_per_threadgroup
	threads_per_grid threadgroups_per_grid threads_per_simdgroup simdgroups_per_threadgroup
	dispatch_threads_per_threadgroup dispatch_simdgroups_per_threadgroup dispatch_quadgroups_per_threadgroup
	quadgroup_index_in_threadgroup quadgroups_per_threadgroup thread_index_in_quadgroup thread_execution_width
	grid_origin grid_size`)

// standardAttributes say nothing that the output needs.
var standardAttributes = words(`maybe_unused nodiscard likely unlikely fallthrough noreturn deprecated unroll user`)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// An attribute is one entry of [[ … ]].
type attribute struct {
	name string
	args []token
	at   position
}

// isAttribute tells whether [[ begins at i.
func isAttribute(ts []token, i int) bool {
	return ts[i].is("[") && at(ts, i+1).is("[") && !ts[i+1].space
}

// attributes reads the list that begins at i; end is the index after ]].
func attributes(ts []token, i int) (list []attribute, end int) {
	inner := closing(ts, i+1)
	end = min(closing(ts, i)+1, len(ts))
	for j := i + 2; j < inner && j < len(ts); j++ {
		if ts[j].kind != identifier {
			continue
		}
		a := attribute{name: ts[j].text, at: ts[j].at}
		for at(ts, j+1).is("::") && at(ts, j+2).kind == identifier {
			j += 2
			a.name = ts[j].text
		}
		if at(ts, j+1).is("(") {
			e := min(closing(ts, j+1), inner)
			a.args = ts[j+2 : e]
			j = e
		}
		list = append(list, a)
	}
	return list, end
}

// rewriteAttributes turns [[ … ]] into annotations, which clang carries into the module.
func (r *rewriter) rewriteAttributes(ts []token) []token {
	out := make([]token, 0, len(ts))
	for i := 0; i < len(ts); i++ {
		if !isAttribute(ts, i) {
			out = append(out, ts[i])
			continue
		}
		list, end := attributes(ts, i)
		for _, a := range list {
			out = append(out, r.annotation(a)...)
		}
		i = end - 1
	}
	return out
}

func (r *rewriter) annotation(a attribute) []token {
	switch {
	case a.name == "kernel":
		return r.make(a.at, `__attribute__((annotate("msl:kernel")))`)
	case a.name == "host_name":
		for _, t := range a.args {
			if t.kind != text || !strings.HasPrefix(t.text, `"`) {
				r.fail(a.at, "host_name needs a string")
				return nil
			}
		}
		if len(a.args) == 0 {
			r.fail(a.at, "host_name needs a string")
			return nil
		}
		return r.make(a.at, `__attribute__((annotate("msl:host_name:" %s)))`, joined(a.args))
	case a.name == "buffer", a.name == "threadgroup", a.name == "max_total_threads_per_threadgroup":
		if len(a.args) == 0 {
			r.fail(a.at, "%s needs a number", a.name)
			return nil
		}
		out := r.make(a.at, `__attribute__((annotate("msl:%s", int{`, a.name) // braces, which refuse what is no int
		out = append(out, a.args...)
		return append(out, r.make(a.at, `})))`)...)
	case builtins[a.name]:
		return r.make(a.at, `__attribute__((annotate("msl:%s")))`, a.name)
	case a.name == "function_constant":
		r.fail(a.at, "function_constant is supported on constants at program scope only")
	case a.name == "texture", a.name == "sampler":
		r.fail(a.at, "textures and samplers are not supported")
	case !standardAttributes[a.name]:
		r.fail(a.at, "attribute %q is not supported", a.name)
	}
	return nil
}
