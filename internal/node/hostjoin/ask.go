// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/node/nodeconfig"
)

// ask asks the API server, before anything is changed, whether it takes the token, and for what the configuration left
// open.
func (h *Host) ask(ctx context.Context, p *Plan, r JoinRequest) error {
	if !p.joined && r.Token.IsZero() {
		return errors.New("a token is needed to join: --token-file, --token, or join.token in the NodeConfig (muster token create makes one)")
	}
	config := byToken(p.Endpoint, p.ca, r.Token)
	if p.joined {
		own, err := h.disk.byNode(p.Endpoint)
		if err != nil {
			return err
		}
		own.CAData = p.ca
		config = own
	}
	client, err := h.Connect(config)
	if err != nil {
		return fmt.Errorf("making a client for the questions before a join: %w", err)
	}
	var since time.Time // when it began to refuse, if it does
	said := ""
	for {
		err := h.askOnce(ctx, client, p, r)
		refused := apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
		switch {
		case !refused:
			since = time.Time{}
		case since.IsZero():
			since = h.Now()
		}
		switch {
		case err == nil:
			return nil
		case refused && h.Now().Sub(since) > refusalPatience, errors.Is(ctx.Err(), context.DeadlineExceeded):
			return err
		}
		if text := err.Error(); !refused && text != said {
			said = text
			h.say("token", Waiting, "trying again: %v", err)
		}
		if !sleep(ctx, retryPause) {
			return err
		}
	}
}

// refusalPatience is how long a refusal may be one of a server that has just been started, and has not loaded its
// credentials and permissions yet.
const refusalPatience = 5 * time.Second

func (h *Host) askOnce(ctx context.Context, client kubernetes.Interface, p *Plan, r JoinRequest) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err) && p.joined:
		return fmt.Errorf("the API server %s does not take the node's certificate: `muster leave --force`, then join with a new token: %w", p.Endpoint, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not take token %s: it has expired, was deleted, or is not for authentication; make another with muster token create: %w", p.Endpoint, r.Token, err)
	case err != nil:
		return fmt.Errorf("asking the API server %s who we are: %w", p.Endpoint, err)
	}
	if err := complete(ctx, client, &p.spec, p); err != nil {
		return err
	}
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server %s for its version: %w", p.Endpoint, err)
	}
	if p.release, err = h.releaseFor(server.GitVersion); err != nil {
		return err
	}
	if p.joined {
		h.done("credential", "the node's certificate is accepted: %s", me.Status.UserInfo.Username)
	} else {
		h.done("token", "accepted: %s", me.Status.UserInfo.Username)
	}
	return nil
}

// complete fills in what the configuration leaves open from what kubeadm's nodes read: the ConfigMap kubeadm-config.
func complete(ctx context.Context, client kubernetes.Interface, spec *nodeconfig.Spec, p *Plan) error {
	c := &spec.Cluster
	c.APIServerEndpoint, c.CertificateAuthority = p.Endpoint, p.ca
	if c.Name != "" && c.CIDR != "" && c.PodCIDR != "" && c.Domain != "" {
		return nil
	}
	found, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		if c.CIDR != "" && c.Name != "" { // the rest has defaults
			return nil
		}
		return fmt.Errorf("reading ConfigMap kube-system/kubeadm-config, which says what the cluster's networks are: %w; or say it in a NodeConfig (--config-source file://…): cluster.name, cluster.cidr", err)
	}
	var cluster struct {
		ClusterName string `json:"clusterName"`
		Networking  struct {
			ServiceSubnet string `json:"serviceSubnet"`
			PodSubnet     string `json:"podSubnet"`
			DNSDomain     string `json:"dnsDomain"`
		} `json:"networking"`
	}
	if err := yaml.Unmarshal([]byte(found.Data["ClusterConfiguration"]), &cluster); err != nil {
		return fmt.Errorf("reading ConfigMap kube-system/kubeadm-config: %w", err)
	}
	for _, v := range []struct {
		to   *string
		from string
	}{{&c.Name, cluster.ClusterName}, {&c.CIDR, cluster.Networking.ServiceSubnet}, {&c.PodCIDR, cluster.Networking.PodSubnet}, {&c.Domain, cluster.Networking.DNSDomain}} {
		if *v.to == "" {
			*v.to = v.from
		}
	}
	return nil
}

// addressTowards is the address that packets to the API server leave from. No packet is sent for that.
func addressTowards(ctx context.Context, endpoint string) (netip.Addr, error) {
	host, err := hostOf(endpoint)
	if err != nil {
		return netip.Addr{}, err
	}
	connection, err := new(net.Dialer).DialContext(ctx, "udp", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("finding the address that leads to the API server: %w; say which with --node-ip", err)
	}
	defer func() { _ = connection.Close() }()
	local, err := netip.ParseAddrPort(connection.LocalAddr().String())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("finding the address that leads to the API server: %w", err)
	}
	return local.Addr().Unmap(), nil
}
