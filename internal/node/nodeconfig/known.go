// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	_ "embed" // for what other programs know
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Names that other programs know, of the version of Kubernetes that muster is built with. Both read leniently what they
// do not know, so nobody would tell: the kubelet its drop-ins (cmd/kubelet/app/server.go,
// loadDropinConfigFileIntoJSON), containerd its base specification. Decoding into upstream's types would bring their
// metrics and flags into every machine's agent; these are lists of what the types hold, which a test writes and
// compares:
//
//	go test ./internal/node/nodeconfig -run TestKnown -update
var (
	//go:embed known/kubelet-fields.txt
	kubeletFieldsText string
	//go:embed known/runtime-spec-fields.txt
	runtimeSpecFieldsText string
	//go:embed known/kubelet-flags.txt
	kubeletFlagsText string

	kubeletFields     = sync.OnceValue(func() *shape { return readShape(kubeletFieldsText) })
	runtimeSpecFields = sync.OnceValue(func() *shape { return readShape(runtimeSpecFieldsText) })
	kubeletFlags      = sync.OnceValue(func() []string { return strings.Fields(kubeletFlagsText) })
)

// Fields of a shape that have no name of their own.
const (
	anyKey   = "*"  // of an object whose keys are free
	elements = "[]" // of a list
)

// shape is what a value may be.
type shape struct {
	kind   string // of a value without fields
	fields map[string]*shape
}

// readShape reads lines like "authentication.x509.clientCAFile string".
func readShape(text string) *shape {
	root := &shape{}
	for line := range strings.Lines(text) {
		path, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		at := root
		for name := range strings.SplitSeq(strings.ReplaceAll(path, elements, "."+elements), ".") {
			if at.fields[name] == nil {
				if at.fields == nil {
					at.fields = map[string]*shape{}
				}
				at.fields[name] = &shape{}
			}
			at = at.fields[name]
		}
		at.kind = kind
	}
	return root
}

// prune takes out of a value what is not known, and tells each.
func (s *shape) prune(path string, value any, each func(problem string)) {
	switch value := value.(type) {
	case map[string]any:
		if s.kind != "" || s.fields[elements] != nil {
			return // it is not an object, which is another problem
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			inner, ok := s.fields[key]
			if !ok {
				inner, ok = s.fields[anyKey]
			}
			if !ok {
				each(fmt.Sprintf("unknown field %q%s", child(path, key), s.meant(key)))
				delete(value, key)
				continue
			}
			inner.prune(child(path, key), value[key], each)
		}
	case []any:
		if inner := s.fields[elements]; inner != nil {
			for i, element := range value {
				inner.prune(fmt.Sprintf("%s[%d]", path, i), element, each)
			}
		}
	}
}

// meant is the field that differs from a key in capitals alone.
func (s *shape) meant(key string) string {
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		if strings.EqualFold(name, key) {
			return "; there is " + name
		}
	}
	return ""
}

// mistyped returns errors about values of the wrong type. An error names the type of the value and not the value
// itself, which may be a password.
func (s *shape) mistyped(path *field.Path, value any) field.ErrorList {
	must := func(ok bool, what string) field.ErrorList {
		if ok {
			return nil
		}
		return field.ErrorList{field.Invalid(path, described(value), "must be "+what)}
	}
	text, isText := value.(string)
	whole, isWhole := wholeNumber(value)
	switch {
	case value == nil:
		return nil
	case s.kind == "string":
		return must(isText, "text, in quotes if it looks like something else")
	case s.kind == "bool":
		_, ok := value.(bool)
		return must(ok, "true or false")
	case s.kind == "int":
		return must(isWhole, "a whole number")
	case s.kind == "uint":
		return must(isWhole && whole >= 0, "a whole number, 0 or more")
	case s.kind == "number":
		_, ok := value.(float64)
		return must(ok || isWhole, "a number")
	case s.kind == "duration":
		_, err := time.ParseDuration(text)
		return must(isText && err == nil, "a duration, like 5m0s")
	case s.kind != "":
		return nil // it has more than one spelling
	}
	var problems field.ErrorList
	if inner := s.fields[elements]; inner != nil {
		list := reflect.ValueOf(value)
		if list.Kind() != reflect.Slice {
			return must(false, "a list")
		}
		for i := range list.Len() {
			problems = append(problems, inner.mistyped(path.Index(i), list.Index(i).Interface())...)
		}
		return problems
	}
	object, ok := value.(map[string]any)
	if !ok {
		return must(false, "an object with fields")
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if inner := s.fields[key]; inner != nil {
			problems = append(problems, inner.mistyped(path.Child(key), object[key])...)
		} else if inner := s.fields[anyKey]; inner != nil {
			problems = append(problems, inner.mistyped(path.Key(key), object[key])...)
		}
	}
	return problems
}

func described(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return "a number"
}

// known are the problems of what other programs will read of a document; a lenient reading goes on without it.
func (r *reader) known(name string, spec map[string]any) {
	say := func(problem string) { r.unknown(name, problem) }
	kubelet, _ := spec["kubelet"].(map[string]any)
	kubeletFields().prune("spec.kubelet.config", kubelet["config"], say)
	if containerd, ok := spec["containerd"].(map[string]any); ok && containerd["baseRuntimeSpec"] != nil {
		runtimeSpecFields().prune("spec.containerd.baseRuntimeSpec", containerd["baseRuntimeSpec"], say)
	}
	if flags, ok := kubelet["flags"].([]any); ok {
		kubelet["flags"] = pruneFlags(flags, say)
	}
}

// pruneFlags takes out flags that kubelets do not know, with their values: a kubelet would not start with them.
func pruneFlags(flags []any, each func(problem string)) []any {
	left := make([]any, 0, len(flags))
	dropping := false
	for i, element := range flags {
		text, _ := element.(string)
		long, isFlag := strings.CutPrefix(text, "--")
		if isFlag {
			name, _, _ := strings.Cut(long, "=")
			name = strings.ReplaceAll(name, "_", "-") // as the kubelet does
			dropping = plainKey.MatchString(name) && !slices.Contains(kubeletFlags(), name)
			if dropping {
				each(fmt.Sprintf("unknown flag %q in %s[%d]", "--"+name, pathFlags, i))
			}
		}
		if !dropping {
			left = append(left, element)
		}
	}
	return left
}
