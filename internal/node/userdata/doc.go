// SPDX-License-Identifier: Apache-2.0

// Package userdata parses the user data of a machine: base64, gzip and MIME multipart, one in another as tools that
// launch instances wrap them. Its errors are in the terms of the user data, and all that it unpacks is
// bounded. Values in, values out.
package userdata

// Limits of user data.
const (
	// MaxRaw is EC2's own limit (EC2 User Guide, "Run commands on your Linux instance at launch").
	MaxRaw = 16 << 10
	// MaxUnpacked bounds all that comes out of gzip, and files of the same formats.
	MaxUnpacked = 1 << 20
	// MaxParts bounds the parts, nested ones included, and MaxDepth how deep multipart may lie in multipart.
	MaxParts = 64
	MaxDepth = 3
)

// Media types that are known by how the content begins.
const (
	TypeShellScript = "text/x-shellscript"
	TypeCloudConfig = "text/cloud-config"
	TypePlain       = "text/plain"
)

// beginning is how content begins that has no type, or one that says nothing.
type beginning struct{ text, mediaType string }

// beginnings are those that cloud-init knows (cloudinit/handlers/__init__.py, INCLUSION_TYPES_MAP), the longer before
// the shorter.
func beginnings() []beginning {
	return []beginning{
		{"#!", TypeShellScript},
		{"#cloud-config-archive", "text/cloud-config-archive"},
		{"#cloud-config-jsonp", "text/cloud-config-jsonp"},
		{"#cloud-config", TypeCloudConfig},
		{"#cloud-boothook", "text/cloud-boothook"},
		{"#include-once", "text/x-include-once-url"},
		{"#include", "text/x-include-url"},
		{"#part-handler", "text/part-handler"},
		{"## template: jinja", "text/jinja2"},
	}
}

// otherTypes are the types that cloud-init carries out, and muster does not.
func otherTypes() []string {
	types := []string{"text/x-shellscript-per-boot", "text/x-shellscript-per-instance", "text/x-shellscript-per-once"}
	for _, b := range beginnings() {
		if b.mediaType != TypeShellScript {
			types = append(types, b.mediaType)
		}
	}
	return types
}

// Part is one document.
type Part struct {
	// MediaType is what its header says, or what its first line does if there is no header.
	MediaType string
	// Name is for people: "user data", or "user data, part 2" of several.
	Name string
	// Content is unwrapped.
	Content []byte
}
