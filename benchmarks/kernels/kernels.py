"""The CUDA kernels against PyTorch in fp64, then their rates beside the copy and GEMM ceilings of the same run.

usage: run.sh (builds the kernels as a plain C library where nvcc and torch are, then runs this)
"""
import ctypes as C, torch, math, sys
L=C.CDLL(sys.argv[1]); L.a_ws.restype=C.c_long; L.k_norm_blocks.restype=C.c_long
dev='cuda'; torch.manual_seed(0)
def P(t): return C.c_void_p(t.data_ptr() if t is not None else 0)
l=C.c_long; f=C.c_float
st=lambda: C.c_void_p(torch.cuda.current_stream().cuda_stream)
def err(a,b):
    a=a.double();b=b.double(); return float((a-b).norm()/b.norm().clamp_min(1e-12)) if bool(a.isfinite().all()) else float('inf')
bad=0
def say(name,e,tol):
    global bad
    ok=e<=tol; bad+=not ok
    print(f"{'ok ' if ok else 'BAD'} {name} {e:.2e}")
def bench(fn,n=20):
    for _ in range(3): fn()
    a=[torch.cuda.Event(enable_timing=True) for _ in range(n+1)]
    a[0].record()
    for i in range(n): fn(); a[i+1].record()
    torch.cuda.synchronize()
    return sorted(a[i].elapsed_time(a[i+1]) for i in range(n))[n//2]
R={torch.float32:0,torch.bfloat16:1}
for dt,tol in ((torch.float32,2e-5),(torch.bfloat16,1e-2)):
    r=R[dt]
    for rows,cols in ((1,1),(7,18),(33,129),(700,3584)):
        x=torch.randn(rows,cols,device=dev).to(dt);res=torch.randn(rows,cols,device=dev).to(dt);w=torch.randn(cols,device=dev).to(dt)
        s=torch.full_like(x,float('nan'));y=torch.full_like(x,float('nan'));rr=torch.empty(rows,device=dev)
        L.k_norm(r,P(x),P(res),P(w),f(1e-5),l(rows),l(cols),P(s),P(y),P(rr),st())
        ws=(x+res).double(); sc=(ws.square().mean(-1,True)+1e-5).rsqrt()
        say(f'norm {dt} {rows}x{cols}',max(err(s,ws),err(y,ws*sc*w.double())),tol)
        g=torch.randn(rows,cols,device=dev).to(dt);pa=torch.randn(rows,cols,device=dev).to(dt)
        dx=torch.full_like(x,float('nan'));part=torch.empty(L.k_norm_blocks(l(rows)),cols,device=dev);dw=torch.ones(cols,device=dev)
        L.k_norm_b(r,P(g),P(pa),P(s),P(w),P(rr),l(rows),l(cols),P(dx),P(part),P(dw),st())
        X=s.double().requires_grad_();W=w.double().requires_grad_()
        (X*(X.square().mean(-1,True)+1e-5).rsqrt()*W).backward(g.double())
        say(f'norm back',max(err(dx,X.grad+pa.double()),err(dw-1,W.grad)),tol)
    for t,h,d in ((1,1,2),(5,3,6),(67,7,64),(130,28,128)):
        x=torch.randn(t,h*d+8,device=dev).to(dt);c=torch.randn(t,d//2,device=dev).to(dt);s=torch.randn(t,d//2,device=dev).to(dt)
        for dr in (1.,-1.):
            y=torch.full((t,h,d),float('nan'),device=dev,dtype=dt)
            L.k_rot(r,P(x),l(h*d+8),P(c),P(s),f(dr),l(t),l(h),l(d//2),P(y),st())
            v=x[:,:h*d].reshape(t,h,d).double();a,b=v[...,:d//2],v[...,d//2:];cc,ss=c.double()[:,None],s.double()[:,None]*dr
            say(f'rot {dt} {t},{h},{d}',err(y,torch.cat([a*cc-b*ss,b*cc+a*ss],-1)),tol)
    for rows,cols in ((1,1),(5,9),(301,1032),(70001,16)):
        both=torch.randn(rows,2*cols,device=dev).to(dt);g,u=both[:,:cols],both[:,cols:]
        y=torch.full((rows,cols),float('nan'),device=dev,dtype=dt)
        L.k_swi(r,P(g),P(u),l(2*cols),l(rows),l(cols),P(y),st())
        G=g.double().clone().requires_grad_();U=u.double().clone().requires_grad_();Y=torch.nn.functional.silu(G)*U
        dy=torch.randn(rows,cols,device=dev).to(dt);Y.backward(dy.double())
        db=torch.full_like(both,float('nan'))
        L.k_swi_b(r,P(dy),P(g),P(u),l(2*cols),l(rows),l(cols),P(db),P(db[:,cols:]),l(2*cols),st())
        say(f'swiglu {dt} {rows}x{cols}',max(err(y,Y),err(db[:,:cols],G.grad),err(db[:,cols:],U.grad)),tol)
    for rows,V in ((1,3),(37,515),(65,152064),(9,32001)):
        for T in (1.,.7):
            x=(torch.randn(rows,V,device=dev)*3).to(dt);tg=torch.randint(-1,V,(rows,),device=dev)
            o=[torch.full((rows,),float('nan'),device=dev) for _ in range(4)]
            L.k_sums(r,P(x),P(tg),f(T),l(rows),l(V),*[P(q) for q in o],st())
            X=x.double()/T;m=X.amax(1);e=(X-m[:,None]).exp();pick=torch.where(tg>=0,X.gather(1,tg.clamp_min(0)[:,None])[:,0],torch.zeros_like(m))
            say(f'sums {dt} {rows}x{V} T{T}',max(err(o[0],m),err(o[1],e.sum(1)),err(o[2],(e*(X-m[:,None])).sum(1)),err(o[3],pick) if bool((tg>=0).any()) else 0),2e-5)
            n=X.logsumexp(1);p=(X-n[:,None]).exp();H=-(p*(X-n[:,None])).sum(1);gs=torch.randn(rows,device=dev);ge=torch.randn(rows,device=dev)
            want=p*(-(gs.double()+ge.double()*H))[:,None]-ge.double()[:,None]*p*(X-n[:,None])
            want.scatter_add_(1,tg.clamp_min(0)[:,None],(gs.double()*(tg>=0))[:,None]);want/=T
            z=x.clone();nf=n.float();Hf=H.float()
            L.k_grad(r,P(z),P(tg),f(T),P(nf),P(Hf),P(gs),P(ge),l(rows),l(V),st())
            say('grad',err(z,want),5e-5 if dt==torch.float32 else tol)
# adamw
import struct
n=200003;m=torch.randn(n,device=dev);g=torch.randn(n,device=dev);a=torch.zeros(n,device=dev);v=torch.zeros(n,device=dev);p=torch.zeros(n,device=dev,dtype=torch.bfloat16);b0=m.clone()
ch=[(0,11,.1),(17,65000,0.),(65017,35000,0.),(100017,60000,.1),(160017,39986,.1)]
tab=torch.frombuffer(bytearray(b''.join(struct.pack('qqfxxxxq',*c,0) for c in ch)),dtype=torch.uint8).cuda()
sq=torch.zeros((),device=dev);part=torch.zeros(len(ch),device=dev)
L.k_sq(P(g),P(tab),l(len(ch)),P(part),P(sq),st()); mask=torch.ones(n,device=dev,dtype=torch.bool);mask[11:17]=False
say('squares',err(sq,(g.double()[mask]**2).sum()),1e-5)
ref=b0.double();ra=torch.zeros_like(ref);rv=torch.zeros_like(ref);dec=torch.zeros_like(ref)
for o,c,d in ch: dec[o:o+c]=d
sc=min(1,2/(math.sqrt(float(sq))+1e-6))
for t in (1,2,3):
    L.k_adamw(f(1e-2),f(.9),f(.999),f(1e-6),f(1-.9**t),f(1-.999**t),f(2.),P(tab),l(len(ch)),P(sq),P(g),P(m),P(a),P(v),P(p),st())
    G=g.double()*sc;ref-=1e-2*dec*ref;ra=.9*ra+.1*G;rv=.999*rv+.001*G*G
    ref=torch.where(mask,ref-1e-2/(1-.9**t)*ra/(rv.sqrt()/math.sqrt(1-.999**t)+1e-6),b0.double())
say('adamw',err(m,ref),1e-6);say('adamw param',0 if torch.equal(p[mask],m[mask].bfloat16()) else 1,0);say('gap',0 if torch.equal(m[11:17],b0[11:17]) else 1,0)
class Sh(C.Structure): _fields_=[(k,C.c_long) for k in 'h kv d b s t qs ks vs w'.split()]+[('scale',C.c_float)]
def attention(lens,h,kv,d,check=True,time=False):
    T=sum(lens);B=1<<(len(lens)-1).bit_length();S=max(64,1<<(max(lens)-1).bit_length())
    q=torch.randn(T,h,d,device=dev).bfloat16();k=torch.randn(T,kv,d,device=dev).bfloat16()
    qkv=torch.randn(T,(h+2*kv)*d,device=dev).bfloat16();v=qkv[:,(h+kv)*d:].view(T,kv,d)
    ln=torch.tensor(lens+[0]*(B-len(lens)),dtype=torch.int32,device=dev);cu=torch.zeros(B+1,dtype=torch.int32,device=dev);cu[1:]=ln.cumsum(0)
    vs=v.stride(0);off=[cu*(h*d),cu*(kv*d),cu*vs,cu*(h*d),cu*(kv*d),cu*h];off=[o.int().contiguous() for o in off]
    bp=(C.c_void_p*7)(ln.data_ptr(),*[o.data_ptr() for o in off])
    sh=Sh(h,kv,d,B,S,T,h*d,kv*d,vs,0,1/math.sqrt(d))
    o=torch.full_like(q,float('nan'));stt=torch.empty(T,h,device=dev);wf=L.a_ws(C.byref(sh),0);wb=L.a_ws(C.byref(sh),1)
    w1=torch.empty(max(wf,1),dtype=torch.uint8,device=dev);w2=torch.empty(max(wb,1),dtype=torch.uint8,device=dev)
    F=lambda:L.a_f(C.byref(sh),bp,P(q),P(k),P(v),P(o),P(stt),P(w1),st())
    g=torch.randn(T,h,d,device=dev).bfloat16();dq,dk=torch.full_like(q,float('nan')),torch.full_like(k,float('nan'));dv=torch.full((T,kv,d),float('nan'),device=dev,dtype=torch.bfloat16)
    Bk=lambda:L.a_b(C.byref(sh),bp,P(q),P(k),P(v),P(o),P(stt),P(g),P(dq),P(dk),P(dv),P(w2),st())
    F();Bk();torch.cuda.synchronize()
    if check:
        Q,K,V=[z.double().clone().requires_grad_() for z in (q,k,v)];parts=[];i=0
        for n in lens:
            a=Q[i:i+n].transpose(0,1);b=K[i:i+n].repeat_interleave(h//kv,1).transpose(0,1);c=V[i:i+n].repeat_interleave(h//kv,1).transpose(0,1)
            s=(a@b.transpose(1,2)/math.sqrt(d)).masked_fill(torch.ones(n,n,device=dev).triu(1).bool(),-math.inf);parts.append((s.softmax(-1)@c).transpose(0,1));i+=n
        O=torch.cat(parts);O.backward(g.double())
        say(f'attention {lens[:5]} {h}/{kv}x{d} ws {wf},{wb}',max([err(o,O),err(dv,V.grad)]+([err(dq,Q.grad),err(dk,K.grad)] if T>1 else [])),2e-2)
    if time:
        fl=sum(4*h*d*n*n/2 for n in lens);tf,tb=bench(F),bench(Bk);print(f'attention {lens[:4]}.. fwd {tf:.3f} ms {fl/tf/1e9:.0f} TF, bwd {tb:.3f} ms {2.5*fl/tb/1e9:.0f} TF, workspace {wf/1e6:.0f} {wb/1e6:.0f} MB')
for lens in ([1],[300],[5,1,64,129,7],[33,90,200,2,2,17,70,1,1]):
    for h,kv,d in ((28,4,128),(6,2,64),(4,4,32)): attention(lens,h,kv,d)
print('failures',bad)
print('--- timing, bf16, 16384 tokens, 7B shapes')
attention([4096]*4,28,4,128,False,True); attention([8192,4096,2048,1024,512,300,100,70,40],28,4,128,False,True)
dt=torch.bfloat16;T,Hd,Fn,V=16384,3584,18944,152064
big=torch.empty(2**31,dtype=torch.uint8,device=dev);big2=torch.empty_like(big);t=bench(lambda:big2.copy_(big));print(f'copy ceiling {2*2**31/t/1e9:.2f} TB/s');bw=2*2**31/t
A=torch.randn(8192,8192,device=dev).bfloat16();Bm=torch.randn(8192,8192,device=dev).bfloat16();t=bench(lambda:A@Bm);print(f'gemm 8192^3 {2*8192**3/t/1e9:.0f} TF')
def row(name,byt,fn,ref=None):
    t=bench(fn);r=bench(ref) if ref else None
    print(f'{name}: {t*1e3:.0f} us, {byt/t/1e9:.2f} TB/s = {byt/t/bw*100:.0f} % of copy'+(f', torch {r*1e3:.0f} us' if r else ''))
x=torch.randn(T,Hd,device=dev).to(dt);res=torch.randn_like(x);w=torch.randn(Hd,device=dev).to(dt);s=torch.empty_like(x);y=torch.empty_like(x);rr=torch.empty(T,device=dev);part=torch.empty(L.k_norm_blocks(l(T)),Hd,device=dev);dw=torch.zeros(Hd,device=dev)
nb=T*Hd*2
row('add+rmsnorm',4*nb,lambda:L.k_norm(1,P(x),P(res),P(w),f(1e-5),l(T),l(Hd),P(s),P(y),P(rr),st()),lambda:torch.nn.functional.rms_norm(x+res,(Hd,),w,1e-5))
row('rmsnorm backward',4*nb,lambda:L.k_norm_b(1,P(y),P(res),P(s),P(w),P(rr),l(T),l(Hd),P(x),P(part),P(dw),st()))
q=torch.randn(T,28,128,device=dev).to(dt);c=torch.randn(T,64,device=dev).to(dt);yq=torch.empty_like(q)
row('rotate q',2*T*Hd*2,lambda:L.k_rot(1,P(q),l(Hd),P(c),P(c),f(1),l(T),l(28),l(64),P(yq),st()))
both=torch.randn(T,2*Fn,device=dev).to(dt);yf=torch.empty(T,Fn,device=dev,dtype=dt);db=torch.empty_like(both)
row('swiglu',3*T*Fn*2,lambda:L.k_swi(1,P(both),P(both[:,Fn:]),l(2*Fn),l(T),l(Fn),P(yf),st()),lambda:torch.nn.functional.silu(both[:,:Fn])*both[:,Fn:])
row('swiglu backward',5*T*Fn*2,lambda:L.k_swi_b(1,P(yf),P(both),P(both[:,Fn:]),l(2*Fn),l(T),l(Fn),P(db),P(db[:,Fn:]),l(2*Fn),st()))
lg=torch.randn(4096,V,device=dev).to(dt);tg=torch.randint(0,V,(4096,),device=dev);o=[torch.empty(4096,device=dev) for _ in range(4)]
row('vocabulary sums 4096 rows',4096*V*2,lambda:L.k_sums(1,P(lg),P(tg),f(1),l(4096),l(V),*[P(z) for z in o],st()),lambda:torch.log_softmax(lg,-1,dtype=torch.float32).gather(1,tg[:,None]))
row('vocabulary gradient',2*4096*V*2,lambda:L.k_grad(1,P(lg),P(tg),f(1),P(o[0]),P(o[1]),P(o[2]),P(o[3]),l(4096),l(V),st()))
n=1<<28;M=[torch.randn(n,device=dev) for _ in range(4)];M[3].abs_();pb=torch.empty(n,device=dev,dtype=dt);k=n>>16
tab=torch.frombuffer(bytearray(b''.join(struct.pack('qqfxxxxq',i<<16,1<<16,.01,0) for i in range(k))),dtype=torch.uint8).cuda();part=torch.zeros(k,device=dev)
row('adamw 268M',30*n,lambda:L.k_adamw(f(1e-5),f(.9),f(.999),f(1e-8),f(.5),f(.5),f(1.),P(tab),l(k),P(sq),P(M[1]),P(M[0]),P(M[2]),P(M[3]),P(pb),st()))
row('squares 268M',4*n,lambda:L.k_sq(P(M[1]),P(tab),l(k),P(part),P(sq),st()))
for N,K in ((4608,3584),(3584,3584),(37888,3584),(3584,18944),(152064,3584)):
    X=torch.randn(T if N<1e5 else 4096,K,device=dev).to(dt);Wt=torch.randn(N,K,device=dev).to(dt);g=torch.randn(X.shape[0],N,device=dev).to(dt);acc=torch.zeros(N,K,device=dev)
    fl=2*X.shape[0]*N*K;t1=bench(lambda:X@Wt.t());t2=bench(lambda:g@Wt);t3=bench(lambda:g.t()@X)
    t4=bench(lambda:torch.ops.aten.addmm.dtype_out(acc,g.t(),X,torch.float32,out=acc))
    print(f'gemm {N}x{K}: fwd {fl/t1/1e9:.0f} dgrad {fl/t2/1e9:.0f} wgrad {fl/t3/1e9:.0f} wgrad into fp32 buffer {fl/t4/1e9:.0f} TF')
    e=torch.zeros(N,K,device=dev)+1;torch.ops.aten.addmm.dtype_out(e,g.t(),X,torch.float32,out=e);say('addmm into fp32',err(e,(g.t().float()@X.float())+1),5e-3)
print('failures',bad)

sys.exit(1 if bad else 0)
