// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const deploy = ".."

// strict decodes objects of all kinds that the chart makes, and refuses fields that they do not have.
func strict(t *testing.T) runtime.Decoder {
	t.Helper()
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoringv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(kinds, serializer.EnableStrict).UniversalDeserializer()
}

// values reads values in YAML.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	v := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatalf("%v in the values\n%s", err, text)
	}
	return v
}

// objects renders the chart and decodes what came of it.
func objects(t *testing.T, text string) []runtime.Object {
	t.Helper()
	return objectsOf(t, chartDir, release, text)
}

func objectsOf(t *testing.T, dir, release, text string) []runtime.Object {
	t.Helper()
	c, err := loadChartIn(deploy, dir)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := renderAs(c, values(t, text), release)
	if err != nil {
		t.Fatal(err)
	}
	if len(rendered) == 0 {
		t.Fatal("the chart makes no objects")
	}
	var all []runtime.Object
	for _, m := range rendered {
		all = append(all, decode(t, m.Content))
	}
	return all
}

func decode(t *testing.T, text string) runtime.Object {
	t.Helper()
	o, _, err := strict(t).Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return o
}

// only is the only object of a type.
func only[T runtime.Object](t *testing.T, all []runtime.Object) T {
	t.Helper()
	found := every[T](all)
	if len(found) != 1 {
		t.Fatalf("there are %d objects of type %T, want one", len(found), *new(T))
	}
	return found[0]
}

func every[T runtime.Object](all []runtime.Object) []T {
	var found []T
	for _, o := range all {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// policyFile is the policy that the controller reads.
func policyFile(t *testing.T, all []runtime.Object) map[string]any {
	t.Helper()
	for _, cm := range every[*corev1.ConfigMap](all) {
		if text, ok := cm.Data["policy.yaml"]; ok {
			return values(t, text)
		}
	}
	t.Fatal("no ConfigMap holds policy.yaml")
	return nil
}

// split splits a file of many YAML documents.
func split(file []byte) []string {
	var documents []string
	for part := range strings.SplitSeq(string(file), "\n---\n") {
		documents = append(documents, part)
	}
	return documents
}
