// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"crypto/subtle"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/cluster-bootstrap/token/jws"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/platform/strictyaml"
)

// Names of cluster-info (k8s.io/cluster-bootstrap/token/api).
const (
	clusterInfoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
	kubeconfigKey   = "kubeconfig"
	signaturePrefix = "jws-kubeconfig-"
	// maxAnswer is what a ConfigMap may be (1 MiB, k8s.io/apiserver's limit of objects is that of etcd, 1.5 MiB),
	// written as JSON.
	maxAnswer = 4 << 20
	// maxKubeconfig is far more than an address and some authorities take.
	maxKubeconfig = 512 << 10
)

// Cluster is what a kubeconfig says of a cluster: where it is and the authorities that vouch for it.
type Cluster struct {
	Server      string // URL
	CA          []byte // PEM
	Authorities []*x509.Certificate
}

// clusterInfo reads the answer of an API server that was asked for cluster-info.
func clusterInfo(answer []byte) (map[string]string, error) {
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(answer, &object); err != nil {
		return nil, errors.New("it is not JSON of an API server")
	}
	if object.Kind != "ConfigMap" || object.Metadata.Name != "cluster-info" || object.Metadata.Namespace != "kube-public" {
		return nil, fmt.Errorf("it is %.40q %.40q, not the ConfigMap kube-public/cluster-info", object.Kind, object.Metadata.Name)
	}
	if object.Data[kubeconfigKey] == "" {
		return nil, errors.New("it has no key kubeconfig")
	}
	return object.Data, nil
}

// checkSignature reports whether the cluster that made cluster-info knows the token.
func checkSignature(data map[string]string, t token.Token) error {
	signature := data[signaturePrefix+t.ID]
	if signature == "" {
		return refuse(NoSignature, fmt.Sprintf("the cluster does not vouch for itself by the token %s: it has expired, was deleted, was never made there, or is not for signing; make a new one with `muster token create --print-join-command`", t.ID))
	}
	_, secret, _ := strings.Cut(t.Reveal(), ".")
	want, err := jws.ComputeDetachedSignature(data[kubeconfigKey], t.ID, secret)
	if err != nil {
		return refuse(BadSignature, fmt.Sprintf("checking the signature for the token %s failed: the token is not usable as a key", t.ID))
	}
	if subtle.ConstantTimeCompare([]byte(signature), []byte(want)) != 1 {
		return refuse(BadSignature, fmt.Sprintf("the signature of cluster-info is not that of the token %s: the part of the token behind the dot is wrong, or somebody who does not know the token changed the answer on its way; compare the token with who made it", t.ID))
	}
	return nil
}

// ReadClusterInfo reads the kubeconfig of cluster-info, strictly: one cluster with its authorities, and nothing that
// would make a client go another way to it. Users in it are nobody's business.
func ReadClusterInfo(kubeconfig string) (Cluster, error) {
	config, err := decode([]byte(kubeconfig))
	if err != nil {
		return Cluster{}, err
	}
	if len(config.Clusters) != 1 {
		return Cluster{}, fmt.Errorf("it names %d clusters, not one", len(config.Clusters))
	}
	c := config.Clusters[0].Cluster
	if c.CertificateAuthority != "" {
		return Cluster{}, errors.New("it names a file (certificate-authority) that is not on this machine")
	}
	if err := checkWay(c); err != nil {
		return Cluster{}, err
	}
	authorities, err := parseAuthorities(c.CertificateAuthorityData)
	if err != nil {
		return Cluster{}, err
	}
	return Cluster{Server: c.Server, CA: c.CertificateAuthorityData, Authorities: authorities}, nil
}

// decode reads one document of YAML.
func decode(raw []byte) (clientcmd.Config, error) {
	var config clientcmd.Config
	if len(raw) > maxKubeconfig {
		return config, fmt.Errorf("the kubeconfig has %d bytes, more than %d", len(raw), maxKubeconfig)
	}
	documents, err := strictyaml.Documents(raw)
	if err != nil || len(documents) != 1 {
		return config, errors.New("the kubeconfig is not one YAML document")
	}
	text, problems := strictyaml.ToJSON(documents[0])
	if len(problems) == 0 {
		problems, _ = strictyaml.FromJSON(text, &config)
	}
	switch {
	case len(problems) > 0:
		return config, fmt.Errorf("the kubeconfig cannot be read: %.200s", problems[0])
	case config.Kind != "Config" || config.APIVersion != "v1":
		return config, fmt.Errorf("it is %.40q of %.40q, not a kubeconfig (Config of v1)", config.Kind, config.APIVersion)
	}
	return config, nil
}

// checkWay refuses what would lead a client around the proofs.
func checkWay(c clientcmd.Cluster) error {
	switch {
	case c.InsecureSkipTLSVerify:
		return errors.New("it says insecure-skip-tls-verify, which would trust anybody")
	case c.ProxyURL != "":
		return errors.New("it says proxy-url: name a proxy in this machine's environment instead")
	case c.TLSServerName != "":
		return errors.New("it says tls-server-name: the server's own name must do")
	}
	if _, err := parseEndpoint(c.Server); err != nil {
		return fmt.Errorf("its server: %w", err)
	}
	return nil
}

// parseEndpoint reads HOST:PORT or https://HOST[:PORT] and returns the URL.
func parseEndpoint(text string) (string, error) {
	bad := func(why string) (string, error) {
		return "", refuse(BadEndpoint, fmt.Sprintf("%.200q is not the address of an API server: %s; write HOST:PORT or https://HOST:PORT", text, why))
	}
	given := text
	if !strings.Contains(text, "://") {
		given = "https://" + text
	}
	u, err := url.Parse(given)
	switch {
	case err != nil:
		return bad("it is not an address")
	case u.Scheme != "https":
		return bad("it is not https, and over http anybody on the way could answer")
	case u.User != nil:
		return bad("there is a user in it")
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "", u.ForceQuery:
		return bad("there is something behind the port")
	}
	host, port := u.Hostname(), u.Port()
	if given != text && port == "" {
		return bad("the port is missing")
	}
	if port == "" {
		port = "443"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return bad("its port is not a number from 1 to 65535")
	}
	address, err := netip.ParseAddr(host)
	switch {
	case err == nil && (address.Zone() != "" || address.IsUnspecified() || address.IsMulticast()):
		return bad("nobody has that address")
	case err != nil && len(validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSuffix(host, ".")))) > 0:
		return bad("its host is neither an IP address nor a name")
	}
	return "https://" + net.JoinHostPort(host, port), nil
}
