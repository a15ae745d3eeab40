// SPDX-License-Identifier: Apache-2.0

// Package image is "muster image": container images that machines have without a registry.
package image
