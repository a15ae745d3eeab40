// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"embed"
	"encoding/base64"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/manifest"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// values are what the manifests are filled in with.
type values struct {
	GroupKubeletClients, GroupAdministrators             string
	BindingInventory, UserInventory                      string
	UserCertificateController, UserAuthenticator         string
	CertificateAuthority, Server                         string // base64 of PEM; URL
	ClusterDomain, DNSAddress                            string
	ClusterName, ControlPlaneEndpoint, KubernetesVersion string
	PodCIDR, ServiceCIDR                                 string
	UserPodWebhook, PodWebhookURL                        string
	UserSimulator                                        string
	FileSystem                                           string // id
	MaxGroupSize, DefaultLocalMaxSize                    int32
	EndpointAddresses                                    []netip.Addr
	EndpointPort                                         uint16
}

// Cluster makes the objects of a cluster. caPEM is the certificate of its authority.
func Cluster(c component.Config, caPEM []byte) ([]*unstructured.Unstructured, error) {
	server := c.Places.Published.URL()
	if c.VPC {
		endpoint, err := c.Endpoint()
		if err != nil {
			return nil, err
		}
		server = "https://" + netip.AddrPortFrom(endpoint, component.EndpointPort).String()
	}
	dns, err := c.DNSAddress()
	if err != nil {
		return nil, err
	}
	network := c.Cluster.Spec.Network
	files := []string{"rbac.yaml", "access-policies.yaml", "cluster-info.yaml", "kubeadm.yaml"}
	if c.VPC {
		files = append(files, "pod-identity-webhook.yaml")
	}
	return render(files, values{
		UserPodWebhook:            component.UserPodWebhook,
		UserSimulator:             component.UserSimulator,
		PodWebhookURL:             c.PodWebhookURL(),
		GroupKubeletClients:       component.GroupKubeletClients,
		GroupAdministrators:       component.GroupAdministrators,
		UserCertificateController: component.UserCertificateController,
		UserAuthenticator:         component.UserAuthenticator,
		CertificateAuthority:      base64.StdEncoding.EncodeToString(caPEM),
		Server:                    server,
		ClusterDomain:             network.ClusterDomain,
		DNSAddress:                dns.String(),
		ClusterName:               c.Cluster.Spec.Name,
		ControlPlaneEndpoint:      strings.TrimPrefix(server, "https://"),
		KubernetesVersion:         c.Release.Version,
		PodCIDR:                   c.Network.PodCIDR.String(),
		ServiceCIDR:               network.ServiceCIDR,
	})
}

// KubernetesEndpoints makes the endpoints of the Service "kubernetes", by which pods reach the API server: its
// addresses in the VPC.
func KubernetesEndpoints(c component.Config) ([]*unstructured.Unstructured, error) {
	return render([]string{"kubernetes-endpoints.yaml"}, values{EndpointAddresses: c.Network.Addresses, EndpointPort: component.EndpointPort})
}

// Volumes makes the objects of the volume driver: the driver, and the default StorageClass, which is about a file
// system. Where there is no VPC there are no machines that mount, and so none.
func Volumes(c component.Config, fileSystemID string) ([]*unstructured.Unstructured, error) {
	if !c.VPC {
		return nil, nil
	}
	return render([]string{"volumes.yaml"}, values{FileSystem: fileSystemID})
}

// Membership makes the objects that a cluster has in the management plane for its components.
func Membership(c component.Config) ([]*unstructured.Unstructured, error) {
	return render([]string{"membership.yaml"}, values{BindingInventory: BindingInventory(c.Dir.Namespace()), UserInventory: c.UserInventory()})
}

// BindingInventory is the name of the binding that lets the certificate controller of a cluster read the machines of
// the account.
func BindingInventory(namespace string) string { return "muster:inventory:" + namespace }

// Management makes the objects of the management plane.
func Management() ([]*unstructured.Unstructured, error) {
	return render([]string{"management.yaml"}, values{
		GroupAdministrators: component.GroupAdministrators,
		MaxGroupSize:        v1alpha1.MaxGroupSize, DefaultLocalMaxSize: v1alpha1.DefaultLocalMaxSize,
	})
}

func render(names []string, v values) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, name := range names {
		text, err := manifests.ReadFile("manifests/" + name)
		if err != nil {
			return nil, err
		}
		filled, err := manifest.Fill(name, string(text), v)
		if err != nil {
			return nil, err
		}
		objects = append(objects, filled...)
	}
	return objects, nil
}
