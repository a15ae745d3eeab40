// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// floorConnections is how many the workers share: requests of one HTTP/2 connection wait for each other's writes.
const floorConnections = 4

// floorMain is the floor: one watch, and for each request nothing but parse, verify, sign and the two writes that the
// API server asks for. There is no policy, no cache and no second try.
func floorMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "of the cluster")
	caFile := flags.String("ca", "", "certificate that signs")
	keyFile := flags.String("ca-key", "", "its key")
	workers := flags.Int("workers", 16, "requests handled at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ca, err := tls.LoadX509KeyPair(*caFile, *keyFile)
	if err != nil {
		return fmt.Errorf("reading the authority: %w", err)
	}
	var clients []certificatesclient.CertificateSigningRequestInterface
	for range floorConnections {
		client, err := floorClient(*kubeconfig)
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	requests := make(chan *certificatesv1.CertificateSigningRequest, 1<<16)
	var group sync.WaitGroup
	for w := range *workers {
		client := clients[w%len(clients)]
		group.Go(func() {
			for csr := range requests {
				if err := floorIssue(ctx, client, csr, ca); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
					fmt.Printf("%s: %v\n", csr.Name, err)
				}
			}
		})
	}
	err = floorWatch(ctx, clients[0], requests)
	close(requests)
	group.Wait()
	if ctx.Err() == nil {
		return err
	}
	return nil // told to stop
}

func floorClient(kubeconfig string) (certificatesclient.CertificateSigningRequestInterface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.Dial = new(net.Dialer).DialContext // clients with a dialer of their own do not share a connection
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client.CertificatesV1().CertificateSigningRequests(), nil
}

func floorWatch(ctx context.Context, client certificatesclient.CertificateSigningRequestInterface, into chan<- *certificatesv1.CertificateSigningRequest) error {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing requests: %w", err)
	}
	for i := range list.Items {
		into <- &list.Items[i]
	}
	return follow(ctx, client, list.ResourceVersion, func(what watch.EventType, csr *certificatesv1.CertificateSigningRequest) {
		if what == watch.Added {
			into <- csr
		}
	})
}

func floorIssue(ctx context.Context, client certificatesclient.CertificateSigningRequestInterface, csr *certificatesv1.CertificateSigningRequest, ca tls.Certificate) error {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return errors.New("no PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	if err := request.CheckSignature(); err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	usage := x509.ExtKeyUsageClientAuth
	if csr.Spec.SignerName == signerServing {
		usage = x509.ExtKeyUsageServerAuth
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		NotBefore: now.Add(-5 * time.Minute), NotAfter: now.Add(7 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, BasicConstraintsValid: true,
	}, ca.Leaf, request.PublicKey, ca.PrivateKey)
	if err != nil {
		return err
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: "True", Reason: "Floor", Message: "floor",
	})
	if csr, err = client.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		return err
	}
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	_, err = client.UpdateStatus(ctx, csr, metav1.UpdateOptions{})
	return err
}
