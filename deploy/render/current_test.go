// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files in the source tree are the files that would be written now.
func TestWrittenFilesAreCurrent(t *testing.T) {
	wanted, err := chartFiles(deploy)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := manifests(deploy)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(wanted, rendered)
	for name, want := range wanted {
		got, err := os.ReadFile(filepath.Join(deploy, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("deploy/%s is not what the chart and the profiles give (%v): make manifests", name, err)
		}
	}
	for _, dir := range []string{"manifests", filepath.Join(chartDir, "files"), filepath.Join(authenticatorChart, "files"), filepath.Join(authenticatorChart, "crds")} {
		entries, err := os.ReadDir(filepath.Join(deploy, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := filepath.Join(dir, e.Name()); wanted[name] == nil {
				t.Errorf("deploy/%s is there, and nothing makes it", name)
			}
		}
	}
}

func TestManifestsDecodeStrictly(t *testing.T) {
	files, err := manifests(deploy)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		needed := []string{"Namespace", "Deployment", "ServiceAccount", "ConfigMap", "ClusterRole", "Role", "PodDisruptionBudget"}
		if strings.HasPrefix(name, "manifests/authenticator") {
			needed = []string{"Namespace", "CustomResourceDefinition", "DaemonSet", "ServiceAccount", "ConfigMap", "ClusterRole", "Role"}
		}
		if strings.HasPrefix(name, "manifests/pod-identity-webhook") {
			needed = append(needed, "Service", "MutatingWebhookConfiguration")
		}
		kinds := map[string]int{}
		for _, document := range split(content) {
			kinds[decode(t, document).GetObjectKind().GroupVersionKind().Kind]++
		}
		for _, kind := range needed {
			if kinds[kind] == 0 {
				t.Errorf("%s has no %s: %v", name, kind, kinds)
			}
		}
	}
}

func TestRunWritesEverything(t *testing.T) {
	tree := t.TempDir()
	dir := filepath.Join(tree, "deploy")
	if err := os.CopyFS(dir, os.DirFS(deploy)); err != nil {
		t.Fatal(err)
	}
	for name := range authenticatorCRDs() { // files that it takes from elsewhere in the source tree
		content, err := os.ReadFile(filepath.Join(deploy, "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := write(tree, map[string][]byte{name: content}); err != nil {
			t.Fatal(err)
		}
	}
	made := []string{"manifests", filepath.Join(chartDir, "files"), filepath.Join(authenticatorChart, "files"), filepath.Join(authenticatorChart, "crds")}
	for _, gone := range made {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"manifests/approve-only.yaml", "manifests/authenticator.yaml", "manifests/authenticator-access-policies.yaml", filepath.Join(chartDir, "files", "alerts.yaml"),
		filepath.Join(authenticatorChart, "files", "dashboard.json"), filepath.Join(authenticatorChart, "crds", "accessentries.yaml"),
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(got) == 0 {
			t.Errorf("%s was not written: %v", name, err)
		}
	}
	if err := run(t.TempDir()); err == nil {
		t.Error("an empty directory was taken for deploy/")
	}
}
