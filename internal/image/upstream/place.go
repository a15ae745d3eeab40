// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/url"
	"regexp"
)

// dockerHost is where Docker's registry answers.
const dockerHost = "registry-1.docker.io"

// place is what a password or token is good for: a repository of a registry.
type place struct {
	registry, repository string
}

// repositoryPath is the path of a request about a repository (distribution-spec, "Endpoints"). The repository becomes
// part of a token's scope, so it holds neither spaces nor colons.
var repositoryPath = regexp.MustCompile(`^/v2/([a-z0-9][a-z0-9._/-]*)/(?:manifests|blobs)/[^/]+$`)

// placeOf finds the place that a request is about. The repository is empty if the path is not one of the
// distribution-spec's.
func placeOf(u *url.URL) place {
	at := place{registry: u.Host}
	if u.Host == dockerHost {
		at.registry = "docker.io"
	}
	if found := repositoryPath.FindStringSubmatch(u.Path); found != nil {
		at.repository = found[1]
	}
	return at
}

// hostOf finds the host that answers for a registry.
func hostOf(registry string) string {
	if registry == "docker.io" {
		return dockerHost
	}
	return registry
}
