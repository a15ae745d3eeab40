// SPDX-License-Identifier: Apache-2.0

// Package imagearchivetest makes archives of images for tests.
package imagearchivetest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/opencontainers/go-digest"
)

// OCI returns an archive of an OCI layout with one image for this platform, whose one layer is empty.
func OCI(t *testing.T, name string) []byte {
	t.Helper()
	var archive bytes.Buffer
	to := tar.NewWriter(&archive)
	add := func(name string, content []byte) {
		if err := to.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	blob := func(kind string, content []byte) map[string]any {
		sum := digest.FromBytes(content)
		add("blobs/sha256/"+sum.Encoded(), content)
		return map[string]any{"mediaType": kind, "digest": sum, "size": len(content)}
	}
	marshal := func(v any) []byte {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	layer := make([]byte, 1024) // the end of a tar
	layers := []any{blob("application/vnd.oci.image.layer.v1.tar", layer)}
	config := blob("application/vnd.oci.image.config.v1+json", marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH, "rootfs": map[string]any{"type": "layers", "diff_ids": []any{digest.FromBytes(layer)}},
	}))
	manifest := blob("application/vnd.oci.image.manifest.v1+json", marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers,
	}))
	manifest["annotations"] = map[string]any{"io.containerd.image.name": name}
	add("index.json", marshal(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}}))
	add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}
