// SPDX-License-Identifier: Apache-2.0

package imagearchive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// config reads the configuration of an image that machines can run, and returns the blob that it is in. A configuration
// without os or architecture, as crane makes it of an empty base, is taken for this platform, as docker does, and is
// written again with both: containerd's CRI plugin unpacks no layers of an image whose configuration does not name its
// platform (core/unpack/unpacker.go, Unpacker.unpack).
func (a *archive) config(descriptor ocispec.Descriptor) (ocispec.Image, ocispec.Descriptor, error) {
	var config ocispec.Image
	content, err := a.document(descriptor.Digest)
	if err != nil {
		return config, descriptor, err
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return config, descriptor, fmt.Errorf("reading configuration %s: %w", descriptor.Digest, err)
	}
	isWhole := config.OS != "" && config.Architecture != ""
	config.OS, config.Architecture = cmp.Or(config.OS, a.platform.OS), cmp.Or(config.Architecture, a.platform.Architecture)
	if !a.runs(config.Platform) {
		return config, descriptor, fmt.Errorf("it is for %s/%s, and machines are %s/%s: build it for that platform", config.OS, config.Architecture, a.platform.OS, a.platform.Architecture)
	}
	if !isWhole {
		descriptor, err = a.rewrite(descriptor, content, map[string]any{"os": config.OS, "architecture": config.Architecture})
	}
	return config, descriptor, err
}

// rewrite adds a document with other values of some members, and returns its descriptor.
func (a *archive) rewrite(descriptor ocispec.Descriptor, content []byte, members map[string]any) (ocispec.Descriptor, error) {
	var document map[string]json.RawMessage
	if err := json.Unmarshal(content, &document); err != nil {
		return descriptor, fmt.Errorf("reading %s: %w", descriptor.Digest, err)
	}
	for name, value := range members {
		raw, err := json.Marshal(value)
		if err != nil {
			return descriptor, err
		}
		document[name] = raw
	}
	content, err := json.Marshal(document)
	if err != nil {
		return descriptor, err
	}
	descriptor.Digest, descriptor.Size, err = a.blobs.Add(bytes.NewReader(content))
	return descriptor, err
}
