// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/policyfile"
)

const chart = "charts/muster-certificate-controller"

// The controller accepts the policy of every manifest.
func TestPoliciesAreAccepted(t *testing.T) {
	files, err := filepath.Glob("manifests/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("manifests %v, %v", files, err)
	}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			var cm corev1.ConfigMap
			if err := yaml.Unmarshal([]byte(document), &cm); err != nil {
				t.Fatal(err)
			}
			text, ok := cm.Data["policy.yaml"]
			if !ok {
				continue
			}
			found = true
			c, err := policyfile.Read([]byte(text))
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if want := strings.TrimSuffix(filepath.Base(path), ".yaml"); c.Mode != want || !c.LeaderElection.Enabled {
				t.Errorf("%s: mode %s, leader election %t", path, c.Mode, c.LeaderElection.Enabled)
			}
		}
		if !found {
			t.Errorf("%s holds no policy", path)
		}
	}
}

// schema is as much of a JSON schema as the test looks at.
type schema struct {
	Ref                  string            `json:"$ref"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties any               `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Definitions          map[string]schema `json:"definitions"`
}

// The chart takes every field of a policy file and no other, but for those that it fills in itself.
func TestChartKnowsEveryFieldOfAPolicy(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	filled := []string{"apiVersion", "kind", "register", "leaderElection", "health", "metrics"}
	compareFields(t, s.Definitions, s.Definitions["policy"], reflect.TypeFor[policyfile.Configuration](), "policy", filled)
}

func compareFields(t *testing.T, definitions map[string]schema, s schema, of reflect.Type, path string, except []string) {
	t.Helper()
	if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		s = definitions[name]
	}
	switch of.Kind() {
	case reflect.Pointer:
		compareFields(t, definitions, s, of.Elem(), path, except)
	case reflect.Slice:
		if s.Items == nil {
			t.Errorf("%s is a list in a policy file, and none in the schema", path)
			return
		}
		compareFields(t, definitions, *s.Items, of.Elem(), path+"[]", except)
	case reflect.Struct:
		fields := map[string]reflect.Type{}
		fieldsOf(of, fields)
		for _, name := range except {
			delete(fields, name)
		}
		want, got := slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(s.Properties))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fields of %s (-policy file +schema):\n%s", path, diff)
		}
		if s.AdditionalProperties != false {
			t.Errorf("%s takes fields that it does not know", path)
		}
		for name, property := range s.Properties {
			if field, ok := fields[name]; ok {
				compareFields(t, definitions, property, field, fmt.Sprintf("%s.%s", path, name), nil)
			}
		}
	default:
		if s.Properties != nil {
			t.Errorf("%s has fields in the schema, and none in a policy file", path)
		}
	}
}

func fieldsOf(of reflect.Type, fields map[string]reflect.Type) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			fieldsOf(field.Type, fields)
			continue
		}
		fields[name] = field.Type
	}
}
