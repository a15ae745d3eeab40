// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"reflect"
	"strings"
)

// Names of the signers that upstream defines.
const (
	SignerKubeletClient  = "kubernetes.io/kube-apiserver-client-kubelet"
	SignerKubeletServing = "kubernetes.io/kubelet-serving"
	SignerClient         = "kubernetes.io/kube-apiserver-client"
	SignerLegacyUnknown  = "kubernetes.io/legacy-unknown"
)

// Kinds of profiles that a signer with a name of its own may have.
const (
	KindServing = "serving"
	KindClient  = "client"
)

// Names says whether certificates carry subject alternative names.
type Names string

// Values of Names.
const (
	NamesNone     Names = "none"
	NamesRequired Names = "required"
	NamesOptional Names = "optional"
)

// Profile is a kind of certificate. Only this package makes profiles: Prepare refuses a profile that was put together
// elsewhere.
type Profile struct {
	// Name in logs and metrics.
	Name string
	// SignerName of the requests that it serves.
	SignerName string
	// Usages that a request must name.
	Usages []string
	// MayUse are usages that a request may name as well.
	MayUse []string
	// Names reports whether certificates carry subject alternative names.
	Names Names
	// Node means that its certificates are those of nodes: the subject is a node's, and a machine stands behind it.
	Node bool
	// Manual means that only a person approves: signing after that is checked, but nothing is approved.
	Manual bool

	kind string // of a custom one
}

// ProfileFor returns the profile of one of upstream's signers.
func ProfileFor(signerName string) (Profile, bool) {
	switch signerName {
	case SignerKubeletClient:
		return ClientProfile(), true
	case SignerKubeletServing:
		return ServingProfile(), true
	case SignerClient:
		return Profile{
			Name: "api-client", SignerName: SignerClient, Manual: true, Names: NamesNone,
			Usages: []string{UsageClientAuth}, MayUse: []string{UsageDigitalSignature, UsageKeyEncipherment},
		}, true
	case SignerLegacyUnknown:
		return Profile{
			Name: "legacy-unknown", SignerName: SignerLegacyUnknown, Manual: true, Names: NamesOptional,
			MayUse: harmlessUsages(),
		}, true
	default:
		return Profile{}, false
	}
}

// CustomProfile makes the profile of a signer that upstream does not know, of kind serving or client. A serving
// certificate is what EKS documents for beta.eks.amazonaws.com/app-serving; the example there has no subject
// alternative names.
func CustomProfile(signerName, kind string) (Profile, error) {
	domain, path, ok := strings.Cut(signerName, "/")
	if !ok || domain == "" || path == "" || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		return Profile{}, fmt.Errorf("the signer %q cannot be given a profile; its name must be <domain>/<path> outside of kubernetes.io", signerName)
	}
	p := Profile{
		Name: "custom-" + kind, SignerName: signerName, Manual: true, kind: kind,
		MayUse: []string{UsageDigitalSignature, UsageKeyEncipherment},
	}
	switch kind {
	case KindServing:
		p.Names, p.Usages = NamesOptional, []string{UsageServerAuth}
	case KindClient:
		p.Names, p.Usages = NamesNone, []string{UsageClientAuth}
	default:
		return Profile{}, fmt.Errorf("the profile %q of signer %s is not known; use %s or %s", kind, signerName, KindServing, KindClient)
	}
	return p, nil
}

// ClientProfile is what a kubelet shows to the API server.
func ClientProfile() Profile {
	return Profile{
		Name: "client", SignerName: SignerKubeletClient, Node: true, Names: NamesNone,
		Usages: []string{UsageDigitalSignature, UsageClientAuth}, MayUse: []string{UsageKeyEncipherment},
	}
}

// ServingProfile is what a kubelet shows to its clients.
func ServingProfile() Profile {
	return Profile{
		Name: "serving", SignerName: SignerKubeletServing, Node: true, Names: NamesRequired,
		Usages: []string{UsageDigitalSignature, UsageServerAuth}, MayUse: []string{UsageKeyEncipherment},
	}
}

// Valid reports whether the profile is exactly one that this package makes.
func (p Profile) Valid() bool {
	known, ok := ProfileFor(p.SignerName)
	if !ok {
		var err error
		if known, err = CustomProfile(p.SignerName, p.kind); err != nil {
			return false
		}
	}
	return reflect.DeepEqual(known, p)
}

// AllowsNames reports whether a certificate may have this many subject alternative names.
func (p Profile) AllowsNames(n int) bool {
	switch p.Names {
	case NamesNone:
		return n == 0
	case NamesRequired:
		return n > 0
	case NamesOptional:
		return true
	default:
		return false
	}
}
