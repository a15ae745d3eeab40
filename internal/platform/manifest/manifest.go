// SPDX-License-Identifier: Apache-2.0

// Package manifest reads manifests of Kubernetes objects, which may be templates of text/template. A name that a
// template uses and its values lack is an error, and so is a document that is not YAML; no document is left out.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Fill fills in a template with values and reads the objects. The name is that of the manifest in errors.
func Fill(name, text string, values any) ([]*unstructured.Unstructured, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	var filled bytes.Buffer
	if err := t.Execute(&filled, values); err != nil {
		return nil, fmt.Errorf("filling in %s: %w", name, err)
	}
	return Read(name, filled.Bytes())
}

// Read reads the objects of a manifest. The name is that of the manifest in errors.
func Read(name string, text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		objects = append(objects, object)
	}
}
