// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	// awsUsers send the requests in turn. Each may send 200 at once and 100 a second, and sends at most awsEach of one
	// kind.
	awsUsers, awsEach = 60, 90
	// awsWorkers send at the same time.
	awsWorkers = 4
	// awsTime is how long one action is measured at most.
	awsTime = 3 * time.Second
	// awsPatience is how long the instances may take to be there.
	awsPatience = 20 * time.Minute
)

// benchAWS measures the AWS APIs: requests a second of one client with several connections, and the time from
// CreateNodegroup to a machine. moto's server is measured in the same way where it is installed.
func benchAWS(ctx context.Context, bin string, instances int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--provider", "simulated", "--nodes", strconv.Itoa(instances), "--timeout", awsPatience.String()); err != nil {
		return err
	}
	c, err := t.awsClient()
	if err != nil {
		return err
	}
	if err := c.makeUsers(ctx); err != nil {
		return err
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "\tcalls/s\tmedian ms\tworst ms\t")
	if err := c.measureReads(ctx, w, "muster", instances); err != nil {
		return err
	}
	took, err := c.firstMachine(ctx)
	if err != nil {
		return err
	}
	if err := benchMoto(ctx, w, instances); err != nil {
		_, _ = fmt.Fprintf(w, "moto: %v\t\t\t\t\n", err)
	}
	_, _ = fmt.Fprintf(w, "CreateNodegroup to an instance that runs, ms\t\t%d\t\t\n", took.Milliseconds())
	return w.Flush()
}

// awsClient signs and sends requests.
type awsClient struct {
	url  string
	http *http.Client
	keys []aws.Credentials
}

// awsCall is a request before it is signed.
type awsCall struct{ service, method, path, body, kind string }

func ec2Call(action string, parameters ...string) awsCall {
	return formCall("ec2", "2016-11-15", action, parameters)
}

func iamCall(action string, parameters ...string) awsCall {
	return formCall("iam", "2010-05-08", action, parameters)
}

func formCall(service, version, action string, parameters []string) awsCall {
	form := url.Values{"Action": {action}, "Version": {version}}
	for i := 0; i+1 < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	return awsCall{service, http.MethodPost, "/", form.Encode(), "application/x-www-form-urlencoded; charset=utf-8"}
}

func eksCall(method, path, body string) awsCall {
	return awsCall{"eks", method, path, body, "application/json"}
}

// awsClient is a client of the trial's account, as its first user.
func (t trial) awsClient() (*awsClient, error) {
	config, err := os.ReadFile(t.state().IAMConfig())
	if err != nil {
		return nil, err
	}
	credentials, err := os.ReadFile(t.state().IAMCredentials())
	if err != nil {
		return nil, err
	}
	setting := func(text []byte, name string) string {
		found := regexp.MustCompile(`(?m)^\s*` + name + `\s*=\s*(\S+)`).FindSubmatch(text)
		if found == nil {
			return ""
		}
		return string(found[1])
	}
	authority, err := os.ReadFile(setting(config, "ca_bundle")) //nolint:gosec // G703: a file that muster wrote
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	c := &awsClient{url: setting(config, "endpoint_url"), keys: []aws.Credentials{{AccessKeyID: setting(credentials, "aws_access_key_id"), SecretAccessKey: setting(credentials, "aws_secret_access_key")}}}
	if c.url == "" || c.keys[0].AccessKeyID == "" {
		return nil, fmt.Errorf("no endpoint or key in %s and %s", t.state().IAMConfig(), t.state().IAMCredentials())
	}
	c.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: awsWorkers, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	return c, nil
}

func (c *awsClient) send(ctx context.Context, key aws.Credentials, q awsCall) (string, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, c.url+q.path, strings.NewReader(q.body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", q.kind)
	sum := sha256.Sum256([]byte(q.body))
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), q.service, "us-east-1", time.Now()); err != nil {
		return "", err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s %.80s: %d %.300s", q.service, q.path, q.body, response.StatusCode, body)
	}
	return string(body), err
}

// makeUsers makes the users that send the requests.
func (c *awsClient) makeUsers(ctx context.Context) error {
	id, secret := regexp.MustCompile(`<AccessKeyId>(.*?)<`), regexp.MustCompile(`<SecretAccessKey>(.*?)<`)
	for n := range awsUsers {
		name := fmt.Sprint("bench", n)
		for _, q := range []awsCall{
			iamCall("CreateUser", "UserName", name), iamCall("AttachUserPolicy", "UserName", name, "PolicyArn", "arn:aws:iam::aws:policy/AdministratorAccess"),
		} {
			if _, err := c.send(ctx, c.keys[0], q); err != nil {
				return err
			}
		}
		made, err := c.send(ctx, c.keys[0], iamCall("CreateAccessKey", "UserName", name))
		if err != nil {
			return err
		}
		key, hidden := id.FindStringSubmatch(made), secret.FindStringSubmatch(made)
		if key == nil || hidden == nil {
			return errors.New("an access key without id or secret")
		}
		c.keys = append(c.keys, aws.Credentials{AccessKeyID: key[1], SecretAccessKey: hidden[1]})
	}
	return nil
}

// measureReads measures the two describe actions.
func (c *awsClient) measureReads(ctx context.Context, w io.Writer, whose string, instances int) error {
	described := ec2Call("DescribeInstances")
	answer, err := c.send(ctx, c.keys[0], described)
	if err != nil {
		return err
	}
	if got := strings.Count(answer, "<instanceId>"); got < instances {
		return fmt.Errorf("%s describes %d instances, not %d", whose, got, instances)
	}
	for _, one := range []struct {
		name string
		call awsCall
	}{{"DescribeCluster", eksCall(http.MethodGet, "/clusters/muster", "")}, {fmt.Sprintf("DescribeInstances, %d of them", instances), described}} {
		took, all, err := c.flood(ctx, one.call)
		if err != nil {
			return err
		}
		slices.Sort(all)
		_, _ = fmt.Fprintf(w, "%s: %s\t%.0f\t%.1f\t%.1f\t\n", whose, one.name, float64(len(all))/took.Seconds(), 1000*all[len(all)/2].Seconds(), 1000*all[len(all)-1].Seconds())
	}
	return nil
}

// flood sends a request by all workers for some time, and returns how long each took.
func (c *awsClient) flood(ctx context.Context, q awsCall) (time.Duration, []time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var workers sync.WaitGroup
	began := time.Now()
	for worker := range awsWorkers {
		workers.Go(func() {
			for n := worker; time.Since(began) < awsTime && n < awsEach*awsUsers && ctx.Err() == nil; n += awsWorkers {
				at := time.Now()
				_, err := c.send(ctx, c.keys[n%len(c.keys)], q)
				mu.Lock()
				all, failed = append(all, time.Since(at)), errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	return time.Since(began), all, failed
}

// firstMachine makes a node group of local machines and waits until an instance of it runs.
func (c *awsClient) firstMachine(ctx context.Context) (time.Duration, error) {
	subnets, err := c.send(ctx, c.keys[0], ec2Call("DescribeSubnets"))
	if err != nil {
		return 0, err
	}
	subnet := regexp.MustCompile(`<subnetId>(.*?)<`).FindStringSubmatch(subnets)
	if subnet == nil {
		return 0, errors.New("there is no subnet")
	}
	began := time.Now()
	body := fmt.Sprintf(`{"nodegroupName":"bench","nodeRole":"arn:aws:iam::000000000000:role/muster-node","subnets":["%s"],"scalingConfig":{"minSize":0,"maxSize":1,"desiredSize":1}}`, subnet[1])
	if _, err := c.send(ctx, c.keys[0], eksCall(http.MethodPost, "/clusters/muster/node-groups", body)); err != nil {
		return 0, err
	}
	for time.Since(began) < time.Minute && ctx.Err() == nil {
		answer, err := c.send(ctx, c.keys[1], ec2Call("DescribeInstances", "Filter.1.Name", "tag:eks:nodegroup-name", "Filter.1.Value.1", "bench", "Filter.2.Name", "instance-state-name", "Filter.2.Value.1", "running"))
		if err != nil {
			return 0, err
		}
		if strings.Contains(answer, "<instanceId>") {
			return time.Since(began), nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("no instance of the node group runs after a minute")
}

// benchMoto measures moto's server with as many instances.
func benchMoto(ctx context.Context, w io.Writer, instances int) error {
	program, err := exec.LookPath("moto_server")
	if err != nil {
		return errors.New("it is not installed (pip install 'moto[server]'): not measured")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := strings.Cut(address, ":")
	server := exec.CommandContext(ctx, program, "-H", "127.0.0.1", "-p", port)
	server.Dir = filepath.Clean(os.TempDir())
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	}()
	c := &awsClient{url: "http://" + address, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: awsWorkers}}, keys: []aws.Credentials{{AccessKeyID: "anybody", SecretAccessKey: "anything"}}}
	began := time.Now()
	for {
		_, err := c.send(ctx, c.keys[0], ec2Call("DescribeVpcs"))
		if err == nil {
			break
		}
		if time.Since(began) > time.Minute || ctx.Err() != nil {
			return fmt.Errorf("its server does not answer: %w", err)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if _, err := c.send(ctx, c.keys[0], eksCall(http.MethodPost, "/clusters", `{"name":"muster","roleArn":"arn:aws:iam::123456789012:role/eks","resourcesVpcConfig":{}}`)); err != nil {
		return err
	}
	if _, err := c.send(ctx, c.keys[0], ec2Call("RunInstances", "ImageId", "ami-12c6146b", "InstanceType", "m5.large", "MinCount", strconv.Itoa(instances), "MaxCount", strconv.Itoa(instances))); err != nil {
		return err
	}
	return c.measureReads(ctx, w, "moto", instances)
}
