// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
)

const nodeUserPrefix = "system:node:"

// event has the fields that are read of an audit.k8s.io/v1 Event. The API server's own type would bring the API
// server's packages along.
type event struct {
	Kind  string `json:"kind"`
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string              `json:"username"`
		Groups   []string            `json:"groups"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	ResponseObject json.RawMessage `json:"responseObject"`
	Received       time.Time       `json:"requestReceivedTimestamp"`
	Reached        time.Time       `json:"stageTimestamp"`
}

// parse reads one line of an audit log. It reports false for what cannot be a step of a join, most of it without
// decoding it.
func parse(line []byte) (event, bool) {
	if !bytes.Contains(line, []byte("certificatesigningrequests")) &&
		!bytes.Contains(line, []byte(v1alpha1.BootstrapGroupPrefix)) &&
		!bytes.Contains(line, []byte(`"resource":"nodes"`)) {
		return event{}, false
	}
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Kind != "Event" || e.Received.IsZero() || e.Reached.IsZero() {
		return event{}, false
	}
	return e, true
}

// done reports whether the request was carried out.
func (e event) done() bool {
	return e.Stage == "ResponseComplete" && e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300
}

func (e event) on(resource, subresource string, verbs ...string) bool {
	return e.ObjectRef.Resource == resource && e.ObjectRef.Subresource == subresource && slices.Contains(verbs, e.Verb)
}

// bootstrapMachine returns the machine whose bootstrap token authenticated the request, or "".
func (e event) bootstrapMachine() string {
	if !strings.HasPrefix(e.User.Username, "system:bootstrap:") {
		return ""
	}
	for _, group := range e.User.Groups {
		if machine, ok := strings.CutPrefix(group, v1alpha1.BootstrapGroupPrefix); ok {
			return machine
		}
	}
	return ""
}

// node returns the name of the node that made the request, or "".
func (e event) node() string {
	name, ok := strings.CutPrefix(e.User.Username, nodeUserPrefix)
	if !ok || !slices.Contains(e.User.Groups, "system:nodes") {
		return ""
	}
	return name
}

// instance returns the machine of a node that came in by its role, or "". Its session is named after it, and the
// authenticator gives a node's name only to a session that it knows to be that instance's own.
func (e event) instance() string {
	names := e.User.Extra["sessionName"]
	if e.node() == "" || len(names) != 1 || !strings.HasPrefix(names[0], "i-") {
		return ""
	}
	return names[0]
}

// csr returns the CSR as it was after the request.
func (e event) csr() (certificatesv1.CertificateSigningRequest, bool) {
	var csr certificatesv1.CertificateSigningRequest
	if len(e.ResponseObject) == 0 || json.Unmarshal(e.ResponseObject, &csr) != nil {
		return csr, false
	}
	if csr.Name == "" {
		csr.Name = e.ObjectRef.Name
	}
	return csr, csr.Name != ""
}

func approved(csr certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved && (c.Status == corev1.ConditionTrue || c.Status == "")
	})
}

// requestedNode returns the node's name in the CN that a CSR asks for, or "".
func requestedNode(csr certificatesv1.CertificateSigningRequest) string {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return ""
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	name, _ := strings.CutPrefix(request.Subject.CommonName, nodeUserPrefix)
	return name
}
