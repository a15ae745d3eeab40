// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/token"
)

// held is what the cache holds of a request: all of it while there is something to do, and after that what pruning asks. A
// finished request shrinks from 5 KiB to less than one.
type held struct {
	metav1.ObjectMeta // name, UID, version and creation only
	item              item
	finished          bool   // denied, failed or issued
	issued            bool   // finished, and with a certificate
	lineage           string // requests that supersede one another; "" if it is nobody's to prune
	commonName        string // of requests of bootstrap tokens

	csr atomic.Pointer[certificatesv1.CertificateSigningRequest] // nil once nothing needs it any more
}

// GetObjectMeta makes it an object to the cache, which asks for name and version.
func (h *held) GetObjectMeta() metav1.Object { return &h.ObjectMeta }

// hold turns what the API server sends into what is held of it. It sees each version of each request before anybody else.
func (c *Controller) hold(o any) (any, error) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return o, nil // held already
	}
	h := &held{
		ObjectMeta: metav1.ObjectMeta{
			Name: csr.Name, UID: csr.UID, ResourceVersion: csr.ResourceVersion, CreationTimestamp: csr.CreationTimestamp,
		},
		item: itemOf(csr),
	}
	if _, ours := c.config.Signers[csr.Spec.SignerName]; !ours {
		h.finished = true
		return h, nil
	}
	h.issued = len(csr.Status.Certificate) > 0
	h.finished = h.issued || decidedAgainst(csr)
	c.place(h, csr)
	if h.issued && c.leading.Load() {
		c.config.Register.Observe(csr)
	}
	switch {
	case c.observes():
		if csr.CreationTimestamp.Time.Before(c.started) && h.finished {
			return h, nil // it was decided by what was true then
		}
	case h.finished:
		return h, nil
	}
	disown(csr)
	csr.ManagedFields = nil // the API server keeps them when the object comes back without
	h.csr.Store(csr)
	return h, nil
}

// decidedAgainst tells whether nothing will come of a request any more. As upstream does it, the condition counts whatever its
// status says (pkg/controller/certificates/certificate_controller_utils.go).
func decidedAgainst(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
	})
}

// number is a resource version, which grows with each write.
func number(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0 // an API server that counts otherwise: creation times and names decide
	}
	return n
}

const (
	nodeUserPrefix      = "system:node:"
	nodesGroup          = "system:nodes"
	bootstrapUserPrefix = "system:bootstrap:"
	bootstrappersGroup  = "system:bootstrappers"
)

// place finds out to which lineage a request belongs: those of a node; those of a bootstrap token that is good for one machine;
// those of another token, or of a user whom the policy lets ask like one, for one node, because many machines share it. Whoever
// else asks prunes for himself.
//
// What a token was issued belongs to the node from then on, so that what the node asks for later supersedes it.
func (c *Controller) place(h *held, csr *certificatesv1.CertificateSigningRequest) {
	groups, user := csr.Spec.Groups, csr.Spec.Username
	switch {
	case strings.HasPrefix(user, nodeUserPrefix) && slices.Contains(groups, nodesGroup):
	case strings.HasPrefix(user, bootstrapUserPrefix) && slices.Contains(groups, bootstrappersGroup), c.provisions(user, csr.Spec.SignerName):
		h.commonName = c.commonName(csr)
		switch {
		case h.issued && strings.HasPrefix(h.commonName, nodeUserPrefix):
			user = h.commonName
		case !goodForOne(groups):
			user += " " + h.commonName
		}
	default:
		return
	}
	h.lineage = csr.Spec.SignerName + " " + user
}

// provisions tells whether the policy lets a user ask for nodes as a shared token does.
func (c *Controller) provisions(user, signer string) bool {
	return c.config.Signers[signer].Profile.Node && slices.ContainsFunc(c.config.Policy.Bootstrap.Bindings, func(b policy.Binding) bool {
		return b.User != "" && b.User == user
	})
}

// goodForOne tells whether the groups bind a token to one machine.
func goodForOne(groups []string) bool {
	return slices.ContainsFunc(groups, func(g string) bool {
		s, ok, err := token.ParseGroup(g)
		return ok && err == nil && (s.Kind == token.ScopeMachine || s.Kind == token.ScopeName)
	})
}

// commonName of a request, checked by nobody, and read once in its life.
func (c *Controller) commonName(csr *certificatesv1.CertificateSigningRequest) string {
	if o, ok, err := c.informer.GetStore().GetByKey(csr.Name); err == nil && ok {
		if before, ok := o.(*held); ok && before.UID == csr.UID {
			return before.commonName
		}
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return ""
	}
	// Reading no further than the subject costs a tenth of reading the key, too. What follows in a sequence is ignored.
	var request struct {
		Info struct {
			Version int
			Subject pkix.RDNSequence
		}
	}
	if _, err := asn1.Unmarshal(block.Bytes, &request); err != nil {
		return ""
	}
	var subject pkix.Name
	subject.FillFromRDNSequence(&request.Info.Subject)
	return strings.Clone(subject.CommonName)
}
