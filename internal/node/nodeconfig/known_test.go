// SPDX-License-Identifier: Apache-2.0

package nodeconfig_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	runtimespec "github.com/opencontainers/runtime-spec/specs-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"muster.dev/muster/internal/platform/release"
)

// The known fields of other programs are those of their types.
func TestKnownFields(t *testing.T) {
	for name, of := range map[string]reflect.Type{
		"kubelet-fields": reflect.TypeFor[kubelet.KubeletConfiguration](), "runtime-spec-fields": reflect.TypeFor[runtimespec.Spec](),
	} {
		var lines []string
		describe("", of, func(path, kind string) { lines = append(lines, path+" "+kind+"\n") })
		slices.Sort(lines)
		golden(t, "known/"+name+".txt", strings.Join(lines, ""))
	}
}

// describe calls for each leaf of a type as encoding/json writes it.
func describe(path string, of reflect.Type, each func(path, kind string)) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if pointer := reflect.PointerTo(of); of == reflect.TypeFor[metav1.Duration]() {
		each(path, "duration")
		return
	} else if pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		each(path, "any")
		return
	}
	switch kind := of.Kind(); kind {
	case reflect.Struct:
		for field := range of.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "-" || !field.IsExported():
			case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
				describe(path, field.Type, each)
			case path == "":
				describe(name, field.Type, each)
			default:
				describe(path+"."+name, field.Type, each)
			}
		}
	case reflect.Map:
		describe(path+".*", of.Elem(), each)
	case reflect.Slice:
		describe(path+"[]", of.Elem(), each)
	case reflect.String, reflect.Bool:
		each(path, kind.String())
	case reflect.Float32, reflect.Float64:
		each(path, "number")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		each(path, "int")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		each(path, "uint")
	default:
		each(path, "any")
	}
}

// The known flags of the kubelet are those that it lists.
func TestKnownFlags(t *testing.T) {
	program := release.Default().Program("../../../bin", "kubelet")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("there is no kubelet to ask; make build makes one: %v", err)
	}
	help, err := exec.CommandContext(t.Context(), program, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	for _, match := range regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z0-9-]+)`).FindAllSubmatch(help, -1) {
		flags = append(flags, fmt.Sprintf("%s\n", match[1]))
	}
	slices.Sort(flags)
	golden(t, "known/kubelet-flags.txt", strings.Join(flags, ""))
}
