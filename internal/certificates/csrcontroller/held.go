// SPDX-License-Identifier: Apache-2.0

package csrcontroller

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
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
)

// held is what the cache holds of a request: all of it while there is something to do, and after that what pruning
// asks. A finished request shrinks from 5 KiB to less than half of one.
type held struct {
	item     item
	uid      types.UID
	version  string
	created  int64  // in whole seconds, as the API server tells it
	finished bool   // denied, failed or issued
	issued   bool   // finished, and with a certificate
	lineage  string // requests that supersede one another; "" if it is nobody's to prune

	csr atomic.Pointer[certificatesv1.CertificateSigningRequest] // nil once nothing needs it any more
}

// GetObjectMeta makes it an object to the cache, which asks for name and version, several times for each version of
// each request.
func (h *held) GetObjectMeta() metav1.Object { return identity{&nothing, h} }

// identity is what the cache asks; of everything else nothing is known.
type identity struct {
	*metav1.ObjectMeta
	held *held
}

var nothing metav1.ObjectMeta

// GetName implements metav1.Object.
func (i identity) GetName() string { return i.held.item.name }

// GetUID implements metav1.Object.
func (i identity) GetUID() types.UID { return i.held.uid }

// GetResourceVersion implements metav1.Object.
func (i identity) GetResourceVersion() string { return i.held.version }

// before is what is held of an earlier version of a request, nil if nothing is.
func (c *Controller) before(csr *certificatesv1.CertificateSigningRequest) *held {
	if o, ok, err := c.informer.GetStore().GetByKey(csr.Name); err == nil && ok {
		if h, ok := o.(*held); ok && h.uid == csr.UID {
			return h
		}
	}
	return nil
}

// hold turns what the API server sends into what is held of it. It sees each version of each request before anybody
// else.
func (c *Controller) hold(o any) (any, error) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return o, nil // held already
	}
	h := &held{item: itemOf(csr), uid: csr.UID, version: csr.ResourceVersion, created: csr.CreationTimestamp.Unix()}
	issuance, ours := c.config.Signers[csr.Spec.SignerName]
	if !ours {
		h.finished = true
		return h, nil
	}
	// Each text is held once, however many versions and parts of the controller know it.
	before := c.before(csr)
	if before != nil && before.item.is(csr) {
		h.item, h.uid = before.item, before.uid
	} else {
		h.item.signer = issuance.Profile.SignerName
	}
	h.issued = len(csr.Status.Certificate) > 0
	h.finished = h.issued || decidedAgainst(csr)
	c.place(h, csr, before)
	if before != nil && before.lineage == h.lineage {
		h.lineage = before.lineage
	}
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
	csr.ManagedFields = nil // the API server keeps them when the object comes back without
	shorten(csr)
	h.csr.Store(csr)
	return h, nil
}

// shorten cuts off the unread part of bytes that are too many to be a request: any requester could have a thousand of a
// MiB held. They are refused for their number all the same, and whatever is written, the API server keeps what was
// asked.
func shorten(csr *certificatesv1.CertificateSigningRequest) {
	if len(csr.Spec.Request) > pki.MaxRequestSize {
		csr.Spec.Request = slices.Clone(csr.Spec.Request[:pki.MaxRequestSize+1])
	}
}

// decidedAgainst reports whether nothing will come of a request any more.
func decidedAgainst(csr *certificatesv1.CertificateSigningRequest) bool {
	phase := policy.PhaseOf(csr)
	return phase == policy.Denied || phase == policy.Failed
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

// place finds out to which lineage a request belongs. Each node has a lineage of its requests, and so has each
// bootstrap token that is good for one machine. Other tokens, and users that the policy lets ask like a token, have a
// lineage for each node, because many machines share them. Requests of other requesters have no lineage: the requester
// prunes them.
//
// A certificate that a token was issued belongs to the node from then on, so that later requests of the node supersede
// it; and so do earlier ones that are known to be the node's own.
func (c *Controller) place(h *held, csr *certificatesv1.CertificateSigningRequest, before *held) {
	groups, user := csr.Spec.Groups, h.item.requester
	switch {
	case strings.HasPrefix(user, nodeUserPrefix) && slices.Contains(groups, nodesGroup):
	case strings.HasPrefix(user, bootstrapUserPrefix) && slices.Contains(groups, bootstrappersGroup), c.provisions(user, csr.Spec.SignerName):
		// It is checked by nobody, and read once in the life of a request.
		if before == nil {
			h.item.about = commonName(csr)
		}
		switch {
		case strings.HasPrefix(h.item.about, nodeUserPrefix) && (h.issued || ownToken(csr, h.item.about)):
			user = h.item.about
		case !goodForOne(groups):
			user += " " + h.item.about
		}
	default:
		return
	}
	h.lineage = lineageOf(csr.Spec.SignerName, user)
}

func lineageOf(signer, user string) string { return signer + " " + user }

// ownToken reports whether it shows in a request that nobody but the node itself can have asked: the token is good for
// its name alone, or was found to be good for its machine alone, or we approved the request. Others are kept apart,
// because what a stranger asks supersedes nothing of a node.
func ownToken(csr *certificatesv1.CertificateSigningRequest, user string) bool {
	machine, _ := csrview.DecidedAbout(csr)
	if machine != "" && !decidedAgainst(csr) {
		return true
	}
	own := false
	for _, g := range csr.Spec.Groups {
		s, ok, err := token.ParseGroup(g)
		switch {
		case !ok && err == nil:
		case err != nil:
			return false
		case s.Kind == token.ScopeName:
			if nodeUserPrefix+s.Value != user {
				return false
			}
			own = true
		case s.Kind == token.ScopeMachine:
			same, known := policy.MachineRef(machine).Same(policy.MachineRef(s.Value))
			if !known || !same {
				return false
			}
			own = true
		}
	}
	return own
}

// provisions reports whether the policy lets a user ask for nodes as a shared token does.
func (c *Controller) provisions(user, signer string) bool {
	return c.config.Signers[signer].Profile.Node && slices.ContainsFunc(c.config.Policy.Bootstrap.Bindings, func(b policy.Binding) bool {
		return b.User != "" && b.User == user
	})
}

// goodForOne reports whether the groups bind a token to one machine.
func goodForOne(groups []string) bool {
	return slices.ContainsFunc(groups, func(g string) bool {
		s, ok, err := token.ParseGroup(g)
		return ok && err == nil && (s.Kind == token.ScopeMachine || s.Kind == token.ScopeName)
	})
}

// longestName is more than the user name of any node has.
const longestName = len(nodeUserPrefix) + 253

// commonName of a request, checked by nobody; "" of what is too large to be read, or a name. It is kept as long as the
// request lives.
func commonName(csr *certificatesv1.CertificateSigningRequest) string {
	if len(csr.Spec.Request) > pki.MaxRequestSize {
		return ""
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return ""
	}
	// Reading no further than the subject costs a tenth of reading the key, too. Further elements of a sequence are
	// ignored.
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
	if len(subject.CommonName) > longestName {
		return ""
	}
	return strings.Clone(subject.CommonName)
}
