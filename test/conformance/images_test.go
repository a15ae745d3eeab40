// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// read returns what a layer holds, by name.
func read(t *testing.T, layer func(*tar.Writer) error) map[string]*tar.Header {
	t.Helper()
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	if err := errors.Join(layer(writer), writer.Close()); err != nil {
		t.Fatal(err)
	}
	found := map[string]*tar.Header{}
	for reader := tar.NewReader(&packed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := found[header.Name]; twice {
			t.Errorf("the layer has %s twice", header.Name)
		}
		found[header.Name] = header
	}
}

// debian makes a root of as few files as there may be.
func debian(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"bin/busybox": "#!/bin/sh\necho nc; echo ls; echo vi; echo sh; echo busybox\n", "bin/bash-static": "program", "bin/ls": "program",
		"usr/share/doc/ls/copyright": "text", "etc/hostname": "this host", "etc/debian_version": "12",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("ls", filepath.Join(root, "bin", "dir")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestEveryImageHasItsLayers(t *testing.T) {
	layers, err := sourcesOf(t.Context(), debian(t), "built", "bin", "upstream")
	if err != nil {
		t.Fatal(err)
	}
	seen, used := map[string]bool{}, map[string]bool{}
	for _, i := range images() {
		if seen[i.name] {
			t.Errorf("%s is packed twice", i.name)
		}
		seen[i.name] = true
		for _, name := range i.layers {
			used[name] = true
			if layers[name] == nil {
				t.Errorf("%s is made of layer %q, which nothing says the content of", i.name, name)
			}
		}
	}
	for name := range layers {
		if !used[name] {
			t.Errorf("no image has layer %q", name)
		}
	}
}

// The suite of another minor asks for other images, which somebody has to look at.
func TestEveryImageThatTheSuiteAsksForIsKnown(t *testing.T) {
	made := map[string]bool{}
	for _, i := range images() {
		made[i.name] = true
	}
	unmade := []string{ // no [Conformance] spec uses them
		"e2e-test-images/apparmor-loader", "e2e-test-images/node-perf/", "e2e-test-images/perl", "e2e-test-images/resource-consumer",
		"e2e-test-images/sample-device-plugin", "e2e-test-images/volume/", "sig-storage/", "cloud-provider-gcp/",
	}
	names := asked()
	for name, tags := range names {
		if !made[name] && !slices.ContainsFunc(unmade, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Errorf("the suite asks for %v: make it, or say above that no spec of [Conformance] does", tags)
		}
	}
	if tags := names["e2e-test-images/nginx"]; len(tags) != 2 || !strings.HasPrefix(tags[0], "registry.k8s.io/e2e-test-images/nginx:") {
		t.Errorf("the suite asks for %v of nginx, want two tags", tags)
	}
	if tags := names["e2e-test-images/agnhost"]; len(tags) == 0 || slices.ContainsFunc(tags, func(tag string) bool { return strings.Contains(tag, "authenticated") }) {
		t.Errorf("the suite asks for %v of agnhost, want those that nobody needs a password for", tags)
	}
}

func TestLayerOfDebian(t *testing.T) {
	root := debian(t)
	found := read(t, tree(root))
	for _, name := range []string{"usr/share/doc/", "usr/share/doc/ls/copyright", "etc/hostname"} {
		if found[name] != nil {
			t.Errorf("the layer has %s", name)
		}
	}
	if found["etc/debian_version"] == nil || found["usr/share/"] == nil {
		t.Errorf("files are missing: %v", found)
	}
	if link := found["bin/dir"]; link == nil || link.Typeflag != tar.TypeSymlink || link.Linkname != "ls" {
		t.Errorf("bin/dir is %+v, want a link to ls", link)
	}
	if program := found["bin/ls"]; program == nil || program.Mode != 0o755 || program.Uname != "" {
		t.Errorf("bin/ls is %+v, want a program without a name of this host's", program)
	}
}

func TestLayersOfNames(t *testing.T) {
	root, built := debian(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(built, "sh"), []byte("shell"), 0o755); err != nil {
		t.Fatal(err)
	}
	layers, err := sourcesOf(t.Context(), root, built, "bin", "upstream")
	if err != nil {
		t.Fatal(err)
	}
	names := read(t, layers["names"])
	if got := names["bin/nc"]; got == nil || got.Linkname != "nc.openbsd" {
		t.Errorf("bin/nc is %+v, want OpenBSD's", got)
	}
	if got := names["bin/vi"]; got == nil || got.Linkname != "busybox" {
		t.Errorf("bin/vi is %+v, want busybox, as no package has it", got)
	}
	if names["bin/ls"] != nil || names["bin/busybox"] != nil {
		t.Error("busybox hides what a package has")
	}
	system := read(t, layers["busybox"])
	if got := system["bin/sh"]; got == nil || got.Size != int64(len("shell")) || got.Mode != 0o755 {
		t.Errorf("bin/sh of busybox is %+v, want the program that was built for it", got)
	}
	if got := system["bin/nc"]; got == nil || got.Linkname != "busybox" {
		t.Errorf("bin/nc of busybox is %+v, want busybox", got)
	}
	if got := system["tmp/"]; got == nil || got.Typeflag != tar.TypeDir || got.Mode != 0o1777 {
		t.Errorf("tmp of busybox is %+v, want a directory that everybody may write to", got)
	}
}

func TestFilesThatAreNotThere(t *testing.T) {
	err := files(file{name: "agnhost", from: filepath.Join(t.TempDir(), "agnhost")})(tar.NewWriter(io.Discard))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("packing a file that is not there: %v", err)
	}
}

func TestModes(t *testing.T) {
	program := filepath.Join(t.TempDir(), "nnp")
	if err := os.WriteFile(program, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := read(t, files(file{name: "nnp", from: program, mode: 0o6755}, file{name: "plain", from: program}, file{name: "text", text: "a"}))
	for name, want := range map[string]int64{"nnp": 0o6755, "plain": 0o755, "text": 0o644} {
		if got := found[name]; got == nil || got.Mode != want || got.Size == 0 {
			t.Errorf("%s is %+v, want mode %o and content", name, got, want)
		}
	}
}
