// The kernels as C functions for kernels.py (ctypes): measuring them needs no build of Tessera.
#include "executor/kernels/kernels.h"
#include "executor/kernels/packed_attention.h"
#include <cstdio>
#include <exception>
using namespace tessera::kernels;
#define API extern "C" 
static int guard(auto&& f){ try { f(); return 0; } catch (const std::exception& e) { std::printf("EXC %s\n", e.what()); std::fflush(stdout); return 1; } }
API int k_norm(int r,const void*x,const void*res,const void*w,float e,long rows,long cols,void*s,void*y,float*rr,void*st){return guard([&]{rms_norm(Real(r),x,res,w,e,rows,cols,s,y,rr,st);});}
API long k_norm_blocks(long rows){return rms_norm_blocks(rows);}
API int k_norm_b(int r,const void*g,const void*p,const void*x,const void*w,const float*rr,long rows,long cols,void*dx,float*part,float*dw,void*st){return guard([&]{rms_norm_backward(Real(r),g,p,x,w,rr,rows,cols,dx,part,dw,st);});}
API int k_rot(int r,const void*x,long ts,const void*c,const void*s,float d,long t,long h,long half,void*y,void*st){return guard([&]{rotate(Real(r),x,ts,c,s,d,t,h,half,y,st);});}
API int k_swi(int r,const void*g,const void*u,long rs,long rows,long cols,void*y,void*st){return guard([&]{swiglu(Real(r),g,u,rs,rows,cols,y,st);});}
API int k_swi_b(int r,const void*dy,const void*g,const void*u,long rs,long rows,long cols,void*dg,void*du,long os,void*st){return guard([&]{swiglu_backward(Real(r),dy,g,u,rs,rows,cols,dg,du,os,st);});}
API int k_sums(int r,const void*l,const long*t,float T,long rows,long cols,float*h,float*s,float*w,float*p,void*st){return guard([&]{vocabulary_sums(Real(r),l,(const std::int64_t*)t,T,rows,cols,h,s,w,p,st);});}
API int k_grad(int r,void*l,const long*t,float T,const float*n,const float*e,const float*gs,const float*ge,long rows,long cols,void*st){return guard([&]{vocabulary_gradient(Real(r),l,(const std::int64_t*)t,T,n,e,gs,ge,rows,cols,st);});}
API int k_sq(const float*x,const void*c,long n,float*part,float*s,void*st){return guard([&]{sum_of_squares(x,(const FlatChunk*)c,n,part,s,st);});}
API int k_adamw(float lr,float b1,float b2,float eps,float c1,float c2,float clip,const void*c,long n,const float*sq,const float*g,float*m,float*a,float*v,void*p,void*st){return guard([&]{AdamW o{lr,b1,b2,eps,c1,c2,clip};adamw(o,(const FlatChunk*)c,n,sq,g,m,a,v,p,st);});}
static PackedAttention& att(){static PackedAttention a;return a;}
struct Sh{long h,kv,d,b,s,t,qs,ks,vs,w;float scale;};
static AttentionShape shape(const Sh*s){AttentionShape o;o.heads=s->h;o.kv_heads=s->kv;o.head_dim=s->d;o.sequences=s->b;o.longest=s->s;o.tokens=s->t;o.q_stride=s->qs;o.k_stride=s->ks;o.v_stride=s->vs;o.window=s->w;o.scale=s->scale;return o;}
API long a_ws(const Sh*s,int b){long r=-1;guard([&]{r=att().workspace_bytes(shape(s),b);});return r;}
API int a_f(const Sh*s,void**bp,const void*q,const void*k,const void*v,void*o,void*st8,void*ws,void*st){return guard([&]{AttentionBatch b{bp[0],bp[1],bp[2],bp[3],bp[4],bp[5],bp[6]};att().forward(shape(s),b,q,k,v,o,st8,ws,st);});}
API int a_b(const Sh*s,void**bp,const void*q,const void*k,const void*v,const void*o,const void*st8,const void*g,void*dq,void*dk,void*dv,void*ws,void*st){return guard([&]{AttentionBatch b{bp[0],bp[1],bp[2],bp[3],bp[4],bp[5],bp[6]};att().backward(shape(s),b,q,k,v,o,st8,g,dq,dk,dv,ws,st);});}
