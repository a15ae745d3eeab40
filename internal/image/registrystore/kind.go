// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"encoding/json"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// checkKind refuses a manifest that has members of an image and of an index: clients that go by its content read
// another image than those that go by its media type (CVE-2021-41190). The rules are those of containerd's
// validateMediaType (core/images/image.go), so what is pushed can be pulled.
func checkKind(mediaType string, content []byte) error {
	// A member that is null counts, too: it is there in the bytes.
	var has struct {
		Config    json.RawMessage `json:"config"`
		Layers    json.RawMessage `json:"layers"`
		Manifests json.RawMessage `json:"manifests"`
		FSLayers  json.RawMessage `json:"fsLayers"`
	}
	if err := json.Unmarshal(content, &has); err != nil {
		return fmt.Errorf("%w manifest: %w", ErrInvalid, err)
	}
	isIndex := mediaType == ocispec.MediaTypeImageIndex || mediaType == dockerList
	switch {
	case has.FSLayers != nil:
		return fmt.Errorf("%w manifest: it has fsLayers, of Docker's first schema: push it in the second one, or in OCI's format", ErrInvalid)
	case isIndex && (has.Config != nil || has.Layers != nil):
		return fmt.Errorf("%w manifest: it is sent as an index (%s) and has config or layers of an image: it must be one of them", ErrInvalid, mediaType)
	case !isIndex && has.Manifests != nil:
		return fmt.Errorf("%w manifest: it is sent as an image (%s) and has manifests of an index: it must be one of them", ErrInvalid, mediaType)
	}
	return nil
}
