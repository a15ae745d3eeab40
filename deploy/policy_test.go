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

	"muster.dev/muster/internal/certificates/policyconfig"
)

const chart = "charts/muster-certificate-controller"

// The controller accepts the policy of every manifest.
func TestPoliciesAreAccepted(t *testing.T) {
	files, err := filepath.Glob("manifests/*.yaml")
	files = slices.DeleteFunc(files, func(path string) bool {
		return strings.HasPrefix(path, "manifests/authenticator") || strings.HasPrefix(path, "manifests/pod-identity-webhook")
	})
	if err != nil || len(files) < 3 {
		t.Fatalf("manifests %v, %v", files, err)
	}
	for _, path := range files {
		c, err := policyconfig.Read(dataOf(t, path, "policy.yaml"))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if want := strings.TrimSuffix(filepath.Base(path), ".yaml"); c.Mode != want || !c.Elects() {
			t.Errorf("%s: mode %s, leader election %t", path, c.Mode, c.Elects())
		}
	}
}

// documents are those of a manifest.
func documents(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(raw), "\n---\n")
}

// dataOf is a file in a ConfigMap of a manifest.
func dataOf(t *testing.T, path, name string) []byte {
	t.Helper()
	for _, document := range documents(t, path) {
		var cm corev1.ConfigMap
		if !strings.Contains(document, "kind: ConfigMap\n") {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), &cm); err != nil {
			t.Fatal(err)
		}
		if text, ok := cm.Data[name]; ok {
			return []byte(text)
		}
	}
	t.Fatalf("%s holds no %s", path, name)
	return nil
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
	s := schemaOf(t, chart)
	filled := []string{"policy.apiVersion", "policy.kind", "policy.register", "policy.leaderElection", "policy.health", "policy.metrics"}
	compareFields(t, s.Definitions, s.Definitions["policy"], reflect.TypeFor[policyconfig.Configuration](), "policy", filled)
}

func schemaOf(t *testing.T, chart string) schema {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// compareFields compares but for the fields at these paths.
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
			t.Errorf("%s is a list in the file, and none in the schema", path)
			return
		}
		compareFields(t, definitions, *s.Items, of.Elem(), path+"[]", except)
	case reflect.Struct:
		fields := map[string]reflect.Type{}
		fieldsOf(of, fields)
		for name := range fields {
			if slices.Contains(except, path+"."+name) {
				delete(fields, name)
			}
		}
		want, got := slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(s.Properties))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fields of %s (-file +schema):\n%s", path, diff)
		}
		if s.AdditionalProperties != false {
			t.Errorf("%s takes fields that it does not know", path)
		}
		for name, property := range s.Properties {
			if field, ok := fields[name]; ok {
				compareFields(t, definitions, property, field, fmt.Sprintf("%s.%s", path, name), except)
			}
		}
	default:
		if s.Properties != nil {
			t.Errorf("%s has fields in the schema, and none in the file", path)
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
