package nodegroup
import ("context";"testing";"os";"time";"log/slog";"fmt";"sync";"net/netip"
 corev1 "k8s.io/api/core/v1"
 metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
 "k8s.io/client-go/rest"
 "github.com/go-logr/logr"
 ctrl "sigs.k8s.io/controller-runtime"
 "sigs.k8s.io/controller-runtime/pkg/client"
 "sigs.k8s.io/controller-runtime/pkg/cluster"
 metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
 "muster.dev/muster/api/v1alpha1"
 "muster.dev/muster/internal/machine"
)
type liveProvider struct{ mu sync.Mutex; m map[string]machine.Instance; n int; c client.Client; launches int}
func (p *liveProvider) Launch(ctx context.Context, r machine.LaunchRequest)(machine.Instance,error){ p.mu.Lock(); defer p.mu.Unlock()
 p.launches++
 i,ok:=p.m[r.ID]; if !ok { p.n++; a:=netip.AddrFrom4([4]byte{192,168,byte(64+p.n/250),byte(p.n%250+1)}); i=machine.Instance{ID:r.ID,LaunchTime:time.Now(),PrivateIP:a,PrivateDNSName:fmt.Sprintf("ip-192-168-%d-%d.muster.internal",64+p.n/250,p.n%250+1)}
 go func(){ n:=&corev1.Node{ObjectMeta:metav1.ObjectMeta{Name:i.PrivateDNSName},Spec:corev1.NodeSpec{ProviderID:"muster:///"+r.ID}}
  if err:=p.c.Create(context.Background(),n);err!=nil{fmt.Println(err);return}
  n.Status.Conditions=[]corev1.NodeCondition{{Type:"Ready",Status:"True",LastTransitionTime:metav1.Now(),LastHeartbeatTime:metav1.Now()}}
  if err:=p.c.Status().Update(context.Background(),n);err!=nil{fmt.Println(err)} }()
 }
 i.State=machine.Running; p.m[r.ID]=i; return i,nil}
func (p *liveProvider) Get(_ context.Context,id string)(machine.Instance,error){p.mu.Lock();defer p.mu.Unlock(); i,ok:=p.m[id]; if !ok{return i,machine.ErrNotFound}; return i,nil}
func (p *liveProvider) List(context.Context)([]machine.Instance,error){p.mu.Lock();defer p.mu.Unlock(); var o []machine.Instance; for _,i:=range p.m{o=append(o,i)}; return o,nil}
func (p *liveProvider) Terminate(_ context.Context,id string)error{p.mu.Lock();defer p.mu.Unlock(); delete(p.m,id); return nil}
func TestLive(t *testing.T){
 tok:=os.Getenv("LIVE_TOKEN")
 cfg:=func(h string)*rest.Config{return &rest.Config{Host:h,BearerToken:tok,TLSClientConfig:rest.TLSClientConfig{Insecure:true},QPS:-1}}
 scheme,_:=Scheme()
 ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stdout,nil)))
 mgr,err:=ctrl.NewManager(cfg("https://127.0.0.1:16443"),ctrl.Options{Scheme:scheme,Metrics:metricsserver.Options{BindAddress:"0"}})
 if err!=nil{t.Fatal(err)}
 cl,err:=cluster.New(cfg("https://127.0.0.1:16444"),ClusterOptions); if err!=nil{t.Fatal(err)}
 direct,_:=client.New(cfg("https://127.0.0.1:16444"),client.Options{Scheme:scheme})
 mg,_:=client.New(cfg("https://127.0.0.1:16443"),client.Options{Scheme:scheme})
 p:=&liveProvider{m:map[string]machine.Instance{},c:direct}
 rt:=map[v1alpha1.Provider]machine.Provider{v1alpha1.ProviderSimulated:p}
 err=Add(mgr,Config{ClusterName:"muster",Cluster:cl,Providers:rt,UserData:func(*v1alpha1.Machine,string)([]byte,error){return nil,nil},Health:func(context.Context)Health{return Health{Version:"v1"}},AuditLog:os.Getenv("LIVE_AUDIT"),Log:slog.Default()})
 if err!=nil{t.Fatal(err)}
 ctx,cancel:=context.WithCancel(t.Context()); done:=make(chan error,1); go func(){done<-mgr.Start(ctx)}()
 c:=&v1alpha1.Cluster{ObjectMeta:metav1.ObjectMeta{Name:"muster"}}; c.Default(); if err:=mg.Create(ctx,c);err!=nil{t.Fatal(err)}
 g:=&v1alpha1.NodeGroup{ObjectMeta:metav1.ObjectMeta{Name:"w"},Spec:v1alpha1.NodeGroupSpec{ClusterName:"muster",Provider:"simulated",ScalingConfig:v1alpha1.ScalingConfig{DesiredSize:500}}}; g.Default()
 start:=time.Now(); if err:=mg.Create(ctx,g);err!=nil{t.Fatal(err)}
 wait:=func(what string,f func()bool){ for i:=0;i<600;i++{ if f(){ fmt.Println(what,time.Since(start)); return}; time.Sleep(100*time.Millisecond)}; t.Error("timeout",what)}
 ready:=func(r,n int32)func()bool{return func()bool{mg.Get(ctx,client.ObjectKey{Name:"w"},g);return g.Status.ReadyReplicas==r&&g.Status.Replicas==n}}
 wait("500 ready",ready(500,500))
 var ms v1alpha1.MachineList; mg.List(ctx,&ms); fmt.Println(len(ms.Items),"machines; launches",p.launches)
 var sec corev1.SecretList; direct.List(ctx,&sec,client.InNamespace("kube-system"),client.HasLabels{v1alpha1.LabelMachine}); fmt.Println("tokens left",len(sec.Items))
 start=time.Now(); p.mu.Lock(); for id,i:=range p.m{ i.State=machine.Stopped; p.m[id]=i; break}; p.mu.Unlock()
 wait("relaunched",func()bool{p.mu.Lock();defer p.mu.Unlock(); for _,i:=range p.m{if i.State!=machine.Running{return false}};return true})
 start=time.Now(); g.Spec.ScalingConfig.DesiredSize=100; if err:=mg.Update(ctx,g);err!=nil{t.Error(err)}
 wait("100",func()bool{mg.List(ctx,&ms);return len(ms.Items)==100})
 var nodes corev1.NodeList; direct.List(ctx,&nodes); fmt.Println("nodes",len(nodes.Items))
 start=time.Now(); mg.Delete(ctx,&ms.Items[0]); wait("replaced",func()bool{var l v1alpha1.MachineList; mg.List(ctx,&l); f:=false; for _,m:=range l.Items{if m.Name==ms.Items[0].Name{f=true}};return !f&&len(l.Items)==100})
 start=time.Now(); mg.Delete(ctx,g); wait("group gone",func()bool{return mg.Get(ctx,client.ObjectKey{Name:"w"},g)!=nil})
 direct.List(ctx,&nodes); fmt.Println("nodes",len(nodes.Items),"instances",len(p.m))
 time.Sleep(1500*time.Millisecond)
 var ev corev1.EventList; mg.List(ctx,&ev); seen:=map[string]int{}; for _,e:=range ev.Items{seen[e.Reason]++}; fmt.Println("events",seen)
 cancel(); fmt.Println(<-done)
}
